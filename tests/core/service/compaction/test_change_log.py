"""The change log of a compaction: all small histories of a key, and a crash at each write."""

import io
import itertools
import json
import struct
from collections.abc import Mapping
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import PlanMismatchError
from eventide_core.table.files.log_block import BlockType, HeaderKey, read_blocks
from support.files.one_slice import (
    BASE,
    CARRIED,
    COPIES,
    D0,
    D1,
    D2,
    D3,
    FILES,
    LOGS,
    MARKER,
    NEW_BASE,
    C,
    compactor,
    logged,
    name_of,
    task,
)
from support.files.slices import base_file, data_block, delete_block, row

NAME = f"part=a/.f-0_{C}.log.1_9-9-9.cdc"
INSTANTS = (D1, D2, D3)
CHANGES = ("-", "U5", "U20", "U30", "D5", "D25")

Rows = Mapping[str, Mapping[str, Any]]


def changes_in(data: bytes) -> list[dict[str, Any]]:
    (block,) = read_blocks(lambda offset, size: data[offset : offset + size], len(data), NAME, is_strict=True)
    assert (block.block_type, block.instant_time) == (BlockType.CDC_DATA, C)
    content = io.BytesIO(data[block.content_offset : block.content_offset + block.content_length])
    version, count = struct.unpack(">ii", content.read(8))
    assert version == 3
    schema: Any = fastavro.parse_schema(json.loads(block.header[HeaderKey.SCHEMA]))
    changes: list[dict[str, Any]] = []
    for _ in range(count):
        content.read(4)
        record: Any = fastavro.schemaless_reader(content, schema)
        changes.append(record)
    assert not content.read()
    return changes


def rows_of(storage: MemoryStorage, base: str) -> dict[str, dict[str, Any]]:
    rows = pq.read_table(io.BytesIO(storage.read(base))).to_pylist()
    return {
        one["_hoodie_record_key"]: {name: value for name, value in one.items() if not name.startswith("_hoodie")}
        for one in rows
    }


def applied(rows: Rows, changes: list[dict[str, Any]]) -> Rows:
    """The rows after the changes, each of which must begin with the row that is there."""
    after = dict(rows)
    for change in changes:
        old, new = change["before"], change["after"]
        key = (old or new)["id"]
        assert (change["op"], old) == ({(0, 1): "i", (1, 1): "u", (1, 0): "d"}[bool(old), bool(new)], after.get(key))
        after.pop(key, None)
        if new:
            after[key] = new
    return after


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    storage = MemoryStorage.from_dump(f"change logs {request.node.name}", {})
    for path, data in FILES.items():
        storage.put(path, data)
    return storage


@pytest.mark.parametrize("merged", range(4))
def test_the_changes_of_partial_compactions_are_those_of_the_base_files(storage: MemoryStorage, merged: int) -> None:
    """All histories of a base row and three log files: a first compaction merges some of these, the next one the rest."""
    histories = ["_".join(changes) for changes in itertools.product(("-", "U10"), *(CHANGES,) * 3)]
    storage.put(BASE, base_file([row(key, 10, "base", D0, "old") for key in histories if key[0] == "U"]))
    for log, instant, place in zip(LOGS, INSTANTS, (1, 2, 3), strict=True):
        of_log = [(key, key.split("_")[place]) for key in histories]
        updates = [row(key, int(change[1:]), instant, instant, "f-0") for key, change in of_log if change[0] == "U"]
        deletes = [(key, int(change[1:])) for key, change in of_log if change[0] == "D"]
        storage.put(log, data_block(instant, updates) + delete_block(instant, deletes))
    logs = tuple(logged(log, len(storage.read(log))) for log in LOGS)
    beside = {"left_overs": (), "carried_name": None, "captures_changes": True}
    middle = NEW_BASE.replace("9-9-9", "8-8-8")
    first = NAME.replace("9-9-9", "8-8-8")
    compactor(storage)(task(compacted=logs[:merged], new_base_name=name_of(middle), **beside))
    compactor(storage)(task(compacted=logs[merged:], base_path=middle, **beside))
    begun, halfway, ended = (rows_of(storage, base) for base in (BASE, middle, NEW_BASE))
    assert applied(begun, changes_in(storage.read(first))) == halfway
    assert applied(halfway, changes_in(storage.read(NAME))) == ended
    assert begun != ended


def test_a_base_file_of_inserts_alone_has_none(storage: MemoryStorage) -> None:
    result = compactor(storage)(task(base_path=None, captures_changes=True))
    assert (result.change_log_size, storage.stat(NAME)) == (None, None)


def test_rows_that_stay_without_a_change_have_an_empty_one(storage: MemoryStorage) -> None:
    """Hudi's reader requires a change log unless all rows of the base file are new."""
    storage.put(LOGS[0], data_block(D1, [row("a", 1, "late", D1, "f-0")]))
    size = len(storage.read(LOGS[0]))
    result = compactor(storage)(task(compacted=(logged(LOGS[0], size),), captures_changes=True))
    assert result.change_log_size == len(storage.read(NAME))
    assert changes_in(storage.read(NAME)) == []


def test_a_base_file_that_loses_all_rows_says_so(storage: MemoryStorage) -> None:
    storage.put(LOGS[0], delete_block(D1, [(key, 90) for key in "abd"]))
    size = len(storage.read(LOGS[0]))
    whole = task(compacted=(logged(LOGS[0], size),), left_overs=(), carried_name=None, captures_changes=True)
    result = compactor(storage)(whole)
    assert (result.num_writes, [change["op"] for change in changes_in(storage.read(NAME))]) == (0, ["d"] * 3)


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_after_a_crash_anywhere_a_second_run_ends_as_if_there_had_been_none(
    storage: MemoryStorage, fault: Fault
) -> None:
    start = storage.dump()
    expected = compactor(storage)(task(captures_changes=True))
    ended = {path: storage.read(path) for path in storage.dump()}
    appearing = [*reversed(COPIES), CARRIED, NAME, MARKER, NEW_BASE]
    for number in range(len(appearing)):
        again = MemoryStorage.from_dump(f"crashed at {number} with changes", start)
        with pytest.raises(SimulatedCrash):
            compactor(FaultyStorage(again, FaultPlan({number: fault})))(task(captures_changes=True))
        assert set(again.dump()) == {*start, *appearing[: number + (fault is Fault.CRASH_AFTER)]}
        assert compactor(again)(task(captures_changes=True)) == expected
        assert {path: again.read(path) for path in again.dump()} == ended


@pytest.mark.parametrize("is_before", [True, False])
def test_another_file_of_its_name_stops_the_merge(storage: MemoryStorage, *, is_before: bool) -> None:
    if not is_before:
        compactor(storage)(task(captures_changes=True))
    storage.put(NAME, b"another")
    with pytest.raises(PlanMismatchError, match=r"\.cdc .*roll the plan back"):
        compactor(storage)(task(captures_changes=True))
