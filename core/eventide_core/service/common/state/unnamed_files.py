"""Files in the directories of a table that no commit names, such as a copied partition's, or a copied log file.

Stock Hudi's readers, and so eventide's, show the rows of such a file unless the table has a metadata table. A compaction
would make these rows the table's for good. The commit of the instant in a file's name shows whose it is or, as version 6
names log files by their slices, the commits of the blocks. Where none of them is known, the file counts.
"""

from collections.abc import Iterable
from functools import cache

from eventide_core.access.block_headers import block_headers
from eventide_core.errors import RefusedError
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.files.file_name import BaseFileName, parse_data_file
from eventide_core.table.files.log_block import BlockType


def refuse_unnamed(files: TableFiles, state: TableState, paths: Iterable[str]) -> None:
    """Raises RefusedError if a file of the listing is none of the table's. Reads log files that no commit names by name."""
    named = {stat.path for commit in state.commits.values() for stat in commit.stats}

    @cache
    def written(time: str) -> frozenset[str] | None:
        """What the write of that time wrote; None if it isn't known."""
        is_archived = state.timeline.is_archived(time)
        commit = state.archive.commit(time) if is_archived else state.commits.get(time)
        return None if commit is None else frozenset(stat.path for stat in commit.stats)

    for path in paths:
        directory, _, name = path.rpartition("/")
        parsed = parse_data_file(name)
        if parsed is None or path in named or (files.listed is not None and name in files.listed.get(directory, ())):
            continue
        own = written(parsed.instant)
        if own is not None and path not in own and not isinstance(parsed, BaseFileName):
            known = [made for time in _instants(files, state, path) if (made := written(time)) is not None]
            own = frozenset[str]().union(*known) if known else None
        if own is not None and path not in own:
            raise RefusedError(
                f"{path} is not named by a commit of its instant, as if it had been copied there; move it out of the table, "
                "and keep it until nobody misses its rows"
            )


def _instants(files: TableFiles, state: TableState, path: str) -> set[str]:
    """The writes of a log file's blocks with records."""
    size = next(file.size for file in state.listing if file.path == path)
    blocks = block_headers(files.storage, path, size)
    return {b.instant_time for b in blocks if b.instant_time is not None and b.block_type is not BlockType.COMMAND}
