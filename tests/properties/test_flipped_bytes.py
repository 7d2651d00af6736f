"""One bit of each byte of a small table flips: `verify --deep` finds it, or every query of eventide returns the same rows.

    found      a check fails, or the table can't be opened: a typed error
    harmless   every check passes, and the queries return the same rows
    silent     every check passes, and a query returns other rows

No flip in a table of eventide's is silent. In a file with a checksum, each is found. In a table of Hudi's, records and
settings have no checksum, and nothing but a flip there is silent.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment
from eventide.testing.histories import EPOCH_MS
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.errors import EventideError
from eventide_core.ports import NoProgress
from eventide_core.table.files.file_name import is_data_file
from eventide_core.table.files.slice_read import QueryPlan
from support.pasts import golden
from support.run.campaign import tries
from support.run.reach import reached
from support.tables.compacted_bench import compacted_bench

VERSIONS = (6, 9)
WITHOUT_CHECKSUM = ("base files", "log files", "hoodie.properties")
"""Where Hudi's own tables say a thing once: a record's value, or a setting such as the payload."""
WITH_CHECKSUM = ("base files", "log files")
EACH_BYTE = 1 << 20
FLIPS_OF_A_FILE = tries(3, EACH_BYTE)
FLIPS_OF_A_FILE_OF_HUDI = 10
"""Evenly spaced; no file has as many bytes as EACH_BYTE."""

pytestmark = pytest.mark.campaign


def flips(files: Mapping[str, MemoryFile], of_a_file: int = FLIPS_OF_A_FILE) -> Iterator[tuple[str, int, MemoryFile]]:
    for path, file in sorted(files.items()):
        step = max(1, len(file.data) // of_a_file)
        for offset in range(0, len(file.data), step):
            data = bytearray(file.data)
            data[offset] ^= 1 << offset % 8
            yield path, offset, MemoryFile(bytes(data), file.modified_ms)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_flipped_bit_changes_rows_without_being_found(version: int) -> None:
    bench, moment = compacted_bench("flipped-bytes", version, OPTIONS)
    rows = shown(bench.process())
    for path, offset, file in flips(moment.files):
        bench.load(Moment({**moment.files, path: file}, moment.time_ms))
        outcome = outcome_of(bench, rows)
        place = place_of(path)
        reached(f"flips, version {version}, {place}: {outcome}")
        assert outcome != "silent", f"{path}, byte {offset}"
        assert outcome == "found" or place not in WITH_CHECKSUM, f"{path}, byte {offset}"


@pytest.mark.proof
@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
def test_in_a_table_of_hudi_flips_are_silent_only_in_records_and_settings(name: str, tmp_path: Path) -> None:
    root = golden.unpack(name, tmp_path)
    paths = [path for path in sorted(root.rglob("*")) if path.is_file() and path.suffix != ".crc"]
    files = {str(path.relative_to(root)): MemoryFile(path.read_bytes(), 1) for path in paths}
    bench = Bench("flipped-bytes-of-hudi", {"hoodie.payload.event.time.field": "event_ts"})
    bench.load(Moment(files, EPOCH_MS))
    rows = shown(bench.process())
    outcomes: set[str] = set()
    for path, offset, file in flips(files, FLIPS_OF_A_FILE_OF_HUDI):
        bench.load(Moment({**files, path: file}, EPOCH_MS))
        outcome, place = outcome_of(bench, rows), place_of(path)
        reached(f"flips in a table of Hudi's, {name}, {place}: {outcome}")
        assert outcome != "silent" or place in WITHOUT_CHECKSUM, f"{path}, byte {offset}"
        outcomes.add(outcome)
    assert {"found", "harmless"} <= outcomes


def outcome_of(bench: Bench, rows: object) -> str:
    try:
        is_found = not bench.process().verifier.verify(is_deep=True, progress=NoProgress()).ok
    except EventideError:
        is_found = True
    if is_found:
        return "found"
    try:
        return "harmless" if shown(bench.process()) == rows else "silent"
    except EventideError:
        return "found"


def place_of(path: str) -> str:
    name = path.rpartition("/")[2]
    if is_data_file(name):
        return "log files" if ".log." in name else "base files"
    if path.startswith(".hoodie/") and name[0].isdigit():
        return ".".join(["timeline", *name.split(".")[1:]])
    return name


def shown(application: Application) -> list[list[tuple[object, ...]]]:
    queries = application.queries.of_one_moment()
    assert queries.moment is not None
    times = [queries.as_of(instant.requested_time) for instant in queries.moment.timeline.writes]
    plans = [queries.snapshot(), queries.read_optimized(), queries.incremental("0", None), *times]
    return [rows_of(application, plan) for plan in plans]


def rows_of(application: Application, plan: QueryPlan) -> list[tuple[object, ...]]:
    batches = (batch for found in plan.slices for batch in application.reader.read(found, plan.shape, None))
    return sorted((tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=repr)
