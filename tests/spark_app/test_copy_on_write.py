"""Copy-on-write tables that Hudi wrote: every verb answers, compactions have nothing to do, writes are refused.

That the queries and `verify` are right, test_golden_reads and test_verify say; that Hudi continues, test_copy_on_write
beside them.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import ConfigError, NothingToDoError, RefusedError, UnsupportedTableError
from eventide_core.ports import NoProgress
from golden.readings import as_values
from support.pasts import golden
from support.run.command_line import content_of, run, run_json

pytestmark = pytest.mark.slow

NAMES = ("v6_copy_on_write", "v9_copy_on_write")
T = "2030-01-01T00:00Z"
ONE_VERSION = {
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}
NOTHING = "a copy-on-write table has no log files"


def rows(found: pa.Table, columns: Sequence[str]) -> Counter[str]:
    return Counter(repr(as_values(row, columns)) for row in found.to_pylist())


def as_of(name: str, instant: str) -> Counter[str]:
    """What Hudi read as of an instant."""
    return Counter(repr(list(row)) for row in golden.expected(name).read(as_of=instant))


def shown(table: Table, name: str) -> Counter[str]:
    found = rows(table.snapshot().to_arrow(), golden.expected(name).columns)
    assert rows(table.read_optimized().to_arrow(), golden.expected(name).columns) == found
    assert table.verify(deep=True).ok
    return found


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def path(name: str, tmp_path: Path) -> Path:
    return golden.unpack(name, tmp_path)


def test_a_compaction_has_nothing_to_do_and_states_the_reason(path: Path) -> None:
    before = content_of(path)
    assert NOTHING in run_json("plan", path, "--before", T)["idle"]
    for words in (("--before", T), ("--before", T, "--schedule-only"), ()):
        answer = run_json("compact", path, "--engine", "local", *words)
        assert (answer["state"], answer["instant"]) == ("idle", None)
        assert NOTHING in answer["idle"]
    assert NOTHING in run("compact", path, "--before", T, "--engine", "local").stdout
    table = Table.open(str(path))
    with pytest.raises(NothingToDoError, match=NOTHING):
        table.compact(before=T)
    assert content_of(path) == before


def test_everything_committed_is_fresh(path: Path, tmp_path: Path) -> None:
    found = run_json("freshness", path, "--require", T, "--by", "partition")
    assert (found["met"], found["complete"], found["watermark_ms"]) == (True, True, None)
    assert found["by_partition"]
    assert all(one["complete"] for one in found["by_partition"].values())
    assert "complete (copy-on-write)" in run("freshness", path).stdout
    page = tmp_path / "report.html"
    assert run_json("report", path, "--to", page)["freshness"]["is_complete"]
    assert "Everything that has been committed is in base files" in page.read_text()
    assert run_json("show", path)["table"]["type"] == "COPY_ON_WRITE"


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete"])
def test_a_write_is_refused_with_the_cure(operation: str, path: Path) -> None:
    before = content_of(path)
    table = Table.open(str(path))
    records = table.snapshot().to_arrow()
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.type=COPY_ON_WRITE.*write to it with Hudi"):
        getattr(table, operation)(records.drop_columns([c for c in records.column_names if c.startswith("_hoodie")]))
    assert content_of(path) == before


@pytest.mark.parametrize(
    ("key", "value", "supported"),
    [
        ("hoodie.datasource.write.table.type", "COPY_ON_WRITE", "MERGE_ON_READ"),
        ("hoodie.datasource.write.drop.partition.columns", "true", "false"),
        ("hoodie.table.cdc.enabled", "true", "false"),
    ],
)
def test_a_table_that_eventide_could_not_write_is_not_created(
    key: str, value: str, supported: str, tmp_path: Path
) -> None:
    schema = pa.schema([pa.field("id", pa.string())])
    with pytest.raises(ConfigError, match=f"{key}.*{value!r} is not one of {supported}"):
        Table.create(str(tmp_path / "t"), schema=schema, record_key="id", options={key: value})
    assert not any(tmp_path.iterdir())
    Table.create(str(tmp_path / "t"), schema=schema, record_key="id", options={key: supported})


def test_a_round_of_the_service_cleans_and_archives(path: Path, name: str) -> None:
    options = {
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "1",
        "hoodie.keep.max.commits": "2",
        "hoodie.compaction.event.time.threshold": T,
    }
    table = Table.open(str(path), options)
    before = shown(table, name)
    done = table.service().round(NoProgress())
    assert not done.troubles
    assert done.deleted
    assert NOTHING in (done.idle or "")
    assert done.freshness is not None
    assert done.freshness.is_complete
    if name == "v6_copy_on_write":  # the other one's metadata table, which was never compacted, holds the timeline
        assert done.archived
    assert shown(table, name) == before


def test_the_last_commit_is_rolled_back(path: Path, name: str) -> None:
    table = Table.open(str(path))
    *_, previous, last = (i.requested_time for i in table.state().timeline.writes)
    assert table.rollback(last)
    assert shown(table, name) == as_of(name, previous)
    assert table.state().timeline.find(last) is None


def test_a_commit_whose_slices_below_are_cleaned_is_not_rolled_back(path: Path, name: str) -> None:
    """Its base files hold the rows of what was cleaned, too."""
    table = Table.open(str(path), ONE_VERSION)
    assert table.clean().deleted
    before, content = shown(table, name), content_of(path)
    last = table.state().timeline.writes[-1].requested_time
    with pytest.raises(RefusedError, match="is gone, and only this file holds its rows"):
        table.rollback(last)
    assert (shown(table, name), content_of(path)) == (before, content)


def test_the_table_goes_back_to_a_savepoint(path: Path, name: str) -> None:
    table = Table.open(str(path))
    saved = table.state().timeline.writes[-3].requested_time
    table.savepoint(saved)
    assert len(table.restore(saved)) == 2
    assert shown(table, name) == as_of(name, saved)


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("plan", "--before", T),
        ("read", "--query", "snapshot"),
        ("compact", "--before", T, "--engine", "local"),
        ("verify",),
        ("freshness",),
    ],
    ids=lambda words: words[0],
)
def test_a_log_file_in_a_copy_on_write_table_is_refused_by_every_verb(words: tuple[str, ...], tmp_path: Path) -> None:
    """Its readers would skip the log's records: the type is wrong, or was changed while there were logs."""
    path = golden.unpack("v9_no_deletes", tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("MERGE_ON_READ", "COPY_ON_WRITE"))
    before = content_of(path)
    answer = run(words[0], path, *words[1:])
    assert answer.exit_code == 3, answer
    assert "hoodie.table.type=COPY_ON_WRITE, but the table has the log file" in answer.stderr
    assert content_of(path) == before
