"""Makes base files of another engine's compaction again, in memory."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace

from eventide_core.action.repair.repairs import Remerging, Replacement
from eventide_core.config.compaction import ParquetCodec
from eventide_core.errors import CorruptTimelineError
from eventide_core.ports import OutputFile, SliceMerger
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.compaction.foreign_plan import as_executed
from eventide_core.service.compaction.merge_tasks import merge_tasks
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata


class _InMemory(OutputFile):
    def __init__(self) -> None:
        self.stream = io.BytesIO()

    def write(self, data: bytes | memoryview, /) -> int:
        return self.stream.write(data)

    def commit(self) -> bool:
        return True

    def abort(self) -> None:
        pass


def merged_again(
    files: TableFiles, merger: SliceMerger, codec: ParquetCodec, again: Remerging
) -> Iterator[Replacement]:
    """The base files, then the commit with their sizes.

    Raises what reading the slices raises, and CorruptTimelineError if a base file had another number of records.
    """
    state = TableState.load(files, requires_files=False)
    executed = as_executed(state, again.plan, 1)
    names = (path.rpartition("/")[2] for path in again.paths)
    operations = tuple(replace(op, new_base_name=name) for op, name in zip(executed.operations, names, strict=True))
    schema = again.commit.schema or executed.schema
    sizes: dict[str, int] = {}
    for task in merge_tasks(state, codec, replace(executed, operations=operations, schema=schema)):
        merger.check(task.shape)
        output = _InMemory()
        merged = merger.merge(task, output, lambda _: {})
        _check_count(again.commit, task.op.new_base_path, merged.result.num_writes)
        data = output.stream.getvalue()
        sizes[task.op.new_base_path] = len(data)
        yield Replacement(task.op.new_base_path, data)
    encoded = files.codec.encode_commit(_with_sizes(again.commit, sizes), files.config().version)
    yield Replacement(again.commit_path, encoded)


def _check_count(commit: CommitMetadata, path: str, rows: int) -> None:
    for stat in commit.stats:
        if stat.path == path and stat.num_writes != rows:
            raise CorruptTimelineError(
                f"{path}: merging its slice again gives {rows} records, but it had {stat.num_writes} by its commit"
            )


def _with_sizes(commit: CommitMetadata, sizes: Mapping[str, int]) -> CommitMetadata:
    stats = {
        partition: tuple(
            stat._replace(file_size_bytes=sizes[stat.path]) if stat.path in sizes else stat for stat in of_partition
        )
        for partition, of_partition in commit.write_stats.items()
    }
    return replace(commit, write_stats=stats)
