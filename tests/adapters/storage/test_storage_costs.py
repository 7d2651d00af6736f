"""What each operation costs on each storage; docs/storage_costs.md shows it, and is held to it here: where a number has
changed, the failure says what the document should say.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_adapters.storage.open import open_storage
from eventide_core.config import BUCKETS, EVENT_TIME_FIELD, INDEX_TYPE, Options
from support.doubles.metered import Cost, metered, requests_counted
from support.pasts import golden
from support.tables.backends import Backend, backend, upload

DOCUMENT = Path(__file__).parents[3] / "docs" / "storage_costs.md"
TABLE = "v6_no_deletes"
T = 1_700_002_204_000
ROWS = pa.table({"id": ["k00000", "k1"], "part": ["a", "a"], "event_ts": [T, T], "val": ["", ""], "amount": [0.0, 0.0]})

# By how much a number may differ from the documented one: names that two tasks make at once cost a request more or less.
TOLERANCE = 0.1

OPERATIONS: dict[str, Callable[[Table], object]] = {
    "plan": lambda table: table.plan_compaction(T),
    "schedule": lambda table: table.schedule(table.plan_compaction(T)),
    "roll back": lambda table: table.rollback(table.state().timeline.pending_plans[0].requested_time),
    "compact": lambda table: table.compact(table.plan_compaction(T)),
    "snapshot": lambda table: table.snapshot().to_arrow(),
    "read optimized": lambda table: table.read_optimized().to_arrow(),
    "insert": lambda table: table.insert(ROWS),
    "upsert": lambda table: table.upsert(ROWS),
}


@pytest.mark.parametrize(
    "name",
    [
        *("local", "moto"),
        *(
            pytest.param(name, marks=pytest.mark.broad)
            for name in ("fake_gcs", "azurite", "hdfs", "hdfs_with_symlinks")
        ),
    ],
)
def test_each_operation_costs_what_the_documentation_states(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    there = backend(name, request, tmp_path)
    upload(golden.unpack(TABLE, tmp_path / "golden"), there.storage)
    measured = {(operation, name): cost_of(run, there) for operation, run in OPERATIONS.items()}
    documented = rows(DOCUMENT.read_text())
    assert all(is_near(documented.get(key, ()), numbers) for key, numbers in measured.items()), (
        f"{DOCUMENT.name} should say:\n"
        + "\n".join(f"| {' | '.join(key)} | {' | '.join(map(str, numbers))} |" for key, numbers in measured.items())
    )


def test_a_plan_lists_each_directory_once_and_opens_no_log_of_eventide() -> None:
    """Where write stats state all event times: the field is never null, and the user says that it is the one."""
    columns: list[pa.Field[Any]] = [pa.field("id", pa.string()), pa.field("part", pa.string())]
    schema = pa.schema([*columns, pa.field("ms", pa.int64(), nullable=False)])
    options: dict[str, str] = {EVENT_TIME_FIELD: "ms", BUCKETS: "1"}
    uri = "memory://planned"
    table = Table.create(uri, schema=schema, record_key="id", partition="part", event_time="ms", options=options)
    for number in range(4):
        rows = {"id": ["a", "b"], "part": ["early", "late"], "ms": [T + number, T + 100 + number]}
        table.upsert(pa.table(rows, schema=schema))
    storage = FaultyStorage(open_storage(uri, Options(options)))
    plan = Table(uri, options, assemble(uri, options, storage=storage)).plan_compaction(T + 2)
    (operation,) = plan.operations
    listed = [read.path for read in storage.reads if read.kind == "list"]
    assert len(listed) == len(set(listed))
    assert (len(operation.compacted), len(operation.left_overs)) == (1, 2)
    assert [read.path for read in storage.reads if ".log." in read.path] == []


def cost_of(run: Callable[[Table], object], there: Backend) -> tuple[int, ...]:
    """Calls of the port, requests, KiB received and sent."""
    cost, storage = Cost(), there.storage
    assert storage.capabilities  # what trying it out costs is paid once a process
    options = {**there.options, INDEX_TYPE: "SIMPLE"}
    table = Table(there.uri, options, assemble(there.uri, options, storage=metered(storage, cost)))
    with requests_counted(cost):
        run(table)
    return sum(cost.calls.values()), cost.requests, round(cost.received / 1024), round(cost.sent / 1024)


def is_near(written: tuple[int, ...], measured: tuple[int, ...]) -> bool:
    pairs = list(zip(written, measured, strict=False))
    return len(written) == len(measured) and all(abs(w - m) <= max(TOLERANCE * w, 2) for w, m in pairs)


def rows(text: str) -> dict[tuple[str, str], tuple[int, ...]]:
    """The documented numbers, by operation and storage."""
    matches = re.findall(r"^\| ([a-z ]+) \| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    return {(operation, name): tuple(map(int, numbers)) for operation, name, *numbers in matches}
