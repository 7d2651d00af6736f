"""Whether Hudi merges a slice by the positions of the log files' records in the base file, instead of by their keys.

A writer that looks up keys in base files, of Hudi 1 on version 8 or later, states in a block's header the positions of its
records, and the instant of the base file that has them. It finds all rows of a key, so the two ways differ only if several
rows of the base file have one key: by positions, a record meets each of them. Hudi merges the whole slice by keys if a
single block that counts has no positions, or has those in another base file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from eventide_adapters.format.log_file.blocks import PlacedBlock, counting_blocks
from eventide_adapters.format.log_file.records import DataBlock, DeleteBlock, iter_block_records
from eventide_core.ports import Storage
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.log_block import HeaderKey
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.record_shape import RecordShape


@dataclass(slots=True)
class PositionsInBase:
    """Reads the log files of a slice. Then `are_known` is true if all blocks that count have positions in its base file.

    `base_path` is the base file's path; for None, a slice without a base file, no positions are known.
    """

    base_path: str | None
    are_known: bool = field(init=False)
    _instant: str | None = field(init=False)

    def __post_init__(self) -> None:
        name = None if self.base_path is None else BaseFileName.parse(self.base_path.rpartition("/")[2])
        self._instant = None if name is None else name.instant
        self.are_known = self._instant is not None

    def records(
        self,
        storage: Storage,
        logs: Sequence[tuple[str, int]],
        shape: RecordShape,
        blocks: BlockFilter,
        columns: Sequence[str],
        *,
        is_strict: bool,
    ) -> Iterator[DataBlock | DeleteBlock]:
        """What `iter_log_records` returns, while it looks for positions."""
        counting = self._seen(counting_blocks(storage, logs, blocks, is_strict=is_strict))
        yield from iter_block_records(storage, counting, shape, columns)

    def _seen(self, blocks: Iterable[PlacedBlock]) -> Iterator[PlacedBlock]:
        for placed in blocks:
            header = placed.block.header
            in_base = header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
            self.are_known = (
                self.are_known and in_base == self._instant and bool(header.get(HeaderKey.RECORD_POSITIONS))
            )
            yield placed
