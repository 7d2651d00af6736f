"""Writes the micro-batches of a stream, each once, however often it is replayed.

1. A batch that the active or archived timeline records as written is skipped.
2. Otherwise, it is written like any other write, and its commit records the batch.
3. Under the lock, before the commit, the timeline is checked again (`Append`): a driver that was considered dead may
   have written the same batch since.

A crash before the commit leaves a write that nobody sees, and the batch is replayed. After the commit, the replay is
skipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from eventide_core.action.write.pending_write import WriteResult
from eventide_core.ports import IncomingRecords, Progress
from eventide_core.service.common.state.table import archived_writes
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.write.append import Append
from eventide_core.table.settings.stream_batch import StreamBatch, batches_of
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata


@dataclass(frozen=True, slots=True)
class BatchWriter:
    files: TableFiles
    append: Append

    def write(
        self, batch: StreamBatch, operation: WriteOperation, records: IncomingRecords, progress: Progress
    ) -> WriteResult | None:
        """Writes the batch; None if it has been written before. Raises what `Append.write` does."""
        last = self.last_written(batch.sink)
        if last is not None and last >= batch.number:
            return None
        return self.append.write(operation, records, progress, batch.extra_metadata)

    def last_written(self, sink: str) -> int | None:
        """The number of the stream's last batch in the table; None if there is none of it."""
        for metadata in self._newest_first():
            numbers = [batch.number for batch in batches_of(metadata.extra_metadata) if batch.sink == sink]
            if numbers:
                return max(numbers)
        return None

    def _newest_first(self) -> Iterator[CommitMetadata]:
        config = self.files.config()
        timeline = self.files.timeline(config)
        archive = self.files.archive(config)
        for instant in reversed(timeline.writes):
            yield self.files.commit(config, instant)
        for instant in archived_writes(archive, timeline):
            metadata = archive.commit(instant.requested_time)
            if metadata is not None:
                yield metadata
