"""Reads the files of a table for a verification: their listing, and the block headers of log files."""

from collections.abc import Mapping
from functools import partial

from eventide_core.action.verification.parts import BlockFacts, LogScan
from eventide_core.errors import EventideError
from eventide_core.ports import Engine, Storage
from eventide_core.service.state.data_directories import directories_of_data, is_another_table
from eventide_core.service.verification.problems import OrProblem, Problem, require_damage
from eventide_core.table.files.file_name import LogFileName, is_data_file
from eventide_core.table.files.log_block import BlockType, HeaderKey, read_blocks
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.files.table_path import PARTITION_MARK
from eventide_core.table.records.operation_column import refuse_operations
from eventide_core.table.timeline.file_system_view import DataFile


def list_everything(storage: Storage) -> tuple[tuple[DataFile, ...], frozenset[str]]:
    """All files of partitions, with the data files and links of other directories; and the data files among them."""
    files: list[DataFile] = []
    unmarked: list[str] = []
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        entries = storage.list(directory)
        if is_another_table(storage, directory, entries):
            continue
        names = {entry.path: entry.path.rpartition("/")[2] for entry in entries}
        is_marked = any(name.startswith(PARTITION_MARK) for name in names.values())
        waiting += directories_of_data(storage.root, entries)
        for entry in entries:
            if entry.is_directory and entry.link_target is None:
                continue
            if is_marked or entry.link_target is not None or is_data_file(names[entry.path]):
                files.append(DataFile(directory, entry.path, entry.size, entry.link_target))
                if not is_marked and is_data_file(names[entry.path]):
                    unmarked.append(entry.path)
    return tuple(sorted(files, key=lambda file: file.path)), frozenset(unmarked)


def scan_logs(
    storage: Storage, engine: Engine, listing: tuple[DataFile, ...], counted: BlockFilter
) -> Mapping[str, LogScan]:
    """The blocks of each log file, except dangling links. Raises UnsupportedTableError for records with operations."""
    there = {file.path for file in listing if file.link_target is None}
    logs = [f for f in listing if LogFileName.parse(f.name) is not None and (f.link_target or f.path) in there]
    scans = engine.map(OrProblem(partial(_scan, storage, counted)), logs)
    return {
        log.path: LogScan((), scan.text) if isinstance(scan, Problem) else scan
        for log, scan in zip(logs, scans, strict=True)
    }


def _scan(storage: Storage, counted: BlockFilter, file: DataFile) -> LogScan:
    """Reads a log file's headers."""
    blocks: list[BlockFacts] = []
    try:
        for block in read_blocks(partial(storage.read_range, file.path), file.size, file.path, is_strict=False):
            if counted.accepts(block.instant_time or ""):
                refuse_operations(block.schema, f"log file {file.path}")
            is_torn = block.block_type is BlockType.CORRUPT
            is_command = block.block_type is BlockType.COMMAND
            target = block.header.get(HeaderKey.TARGET_INSTANT_TIME) if is_command else None
            blocks.append(BlockFacts(block.offset, block.instant_time, is_torn, is_command, target))
    except EventideError as error:
        require_damage(error)
        return LogScan(tuple(blocks), str(error))
    return LogScan(tuple(blocks))
