"""Whether Hudi merges a slice by the positions of the log files' records in the base file, instead of by their keys.

A writer that looks up keys in base files, of Hudi 1 on version 8 or later, states in a block's header the positions of its
records, and the instant of the base file that has them. It finds all rows of a key, so the two ways differ only if several
rows of the base file have one key: by positions, a record meets each of them. Hudi merges the whole slice by keys if a
single block that counts has no positions, or has those in another base file.
"""

from dataclasses import dataclass, field

from eventide_adapters.format.log_file.blocks import PlacedBlock
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.log_block import HeaderKey


@dataclass(slots=True)
class PositionsInBase:
    """Whether all noted blocks of a slice have positions in its base file: `are_known`.

    `base_path` is the base file's path; for None, a slice without a base file, no positions are known.
    """

    base_path: str | None
    are_known: bool = field(init=False)
    _instant: str | None = field(init=False)

    def __post_init__(self) -> None:
        name = None if self.base_path is None else BaseFileName.parse(self.base_path.rpartition("/")[2])
        self._instant = None if name is None else name.instant
        self.are_known = self._instant is not None

    def note(self, placed: PlacedBlock) -> None:
        """Takes a block that counts into account. All of the slice's log files have to be noted."""
        header = placed.block.header
        in_base = header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
        self.are_known = self.are_known and in_base == self._instant and bool(header.get(HeaderKey.RECORD_POSITIONS))
