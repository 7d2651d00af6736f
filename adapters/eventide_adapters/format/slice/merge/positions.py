"""Whether Hudi merges a slice by the positions of the log files' records in the base file, instead of by their keys.

A writer that looks up keys in base files, of Hudi 1 on version 8 or later, states in a block's header the positions of its
records, and the instant of the base file that has them. It finds all rows of a key, so the two ways differ only if several
rows of the base file have one key: by positions, a record meets each of them. Hudi merges the whole slice by keys if a
single block that counts has no positions, or has those in another base file.
"""

from collections.abc import Iterable

from eventide_adapters.format.slice.log_file.blocks import PlacedBlock
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.log_block import HeaderKey


def are_positions_known(base_path: str | None, blocks: Iterable[PlacedBlock]) -> bool:
    """Whether all blocks of a slice that count have positions in its base file, and there is one."""
    name = None if base_path is None else BaseFileName.parse(base_path.rpartition("/")[2])
    headers = (placed.block.header for placed in blocks)
    return name is not None and all(
        header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) == name.instant
        and header.get(HeaderKey.RECORD_POSITIONS)
        for header in headers
    )
