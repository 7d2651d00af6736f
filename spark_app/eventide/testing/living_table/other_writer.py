"""Writes as other engines make them: nothing is asked of event times."""

from dataclasses import replace

from eventide.bootstrap import Application
from eventide.testing.histories import Commit, Layout, records
from eventide_adapters.format.write.arrow_records import ArrowRecords
from eventide_adapters.format.write.record_writer import RowWriter
from eventide_core.table.settings.write_shape import WriteShape


class RecordsOfOthers(ArrowRecords):
    """Records whose event times may be unreadable. The write is otherwise one of eventide."""

    def prepare(self, shape: WriteShape, *, combines: bool) -> None:
        super().prepare(replace(shape, refuses_unreadable_times=False), combines=combines)


def incoming(application: Application, changes: Commit, layout: Layout) -> ArrowRecords:
    """The changes as eventide writes them; if it would refuse one, as another engine does."""
    kind = RecordsOfOthers if any(change.is_unreadable for change in changes) else ArrowRecords
    return kind(*records(changes, layout.schema), application.engine, RowWriter(application.storage))
