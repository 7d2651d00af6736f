"""The records of a write in one file group of an index over keys, and the log file that holds them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.metadata_table.file_contents import FileContents
from eventide_adapters.format.metadata_table.log_form import LogForm
from eventide_adapters.format.metadata_table.records import Value, encode_value

ENCODED_HERE: Final = 50_000  # so many keys are encoded sooner than a job of Spark starts and ends


@dataclass(frozen=True, slots=True)
class GroupRecords:
    """The records of a write in one file group: keys as Arrow arrays, each with the value that its keys share."""

    form: LogForm
    living: tuple[tuple[Any, Value], ...]
    removed: tuple[str, ...]

    def encoded(self) -> tuple[int, bytes]:
        """The number of records, and the content of a log file."""
        values: dict[bytes, bytes] = {}
        for keys, value in self.living:
            values.update(dict.fromkeys(keys.cast(pa.binary()).to_pylist(), encode_value(value, self.form.schema)))
        return len(values) + len(self.removed), self.form.encode(sorted(values.items()), self.removed)


def group_logs(
    contents: FileContents, name: Hashable, count: int, groups: Callable[[], Sequence[GroupRecords]]
) -> Sequence[tuple[int, bytes]]:
    """The number of records and the content of the log file of each file group, for `count` keys in all.

    Tasks of the engine encode them if there are many. `name`: see `FileContents.derive`.
    """
    return contents.derive(name, GroupRecords.encoded, groups, by_tasks=count > ENCODED_HERE)
