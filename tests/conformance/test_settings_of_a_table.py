"""hoodie.properties while Hudi changes it, damaged, and rewritten by eventide: Hudi and eventide say the same of it."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_core.errors import NotAHudiTableError
from golden.histories import PLAIN
from golden.readings import as_json
from support.cases.unsupported import refused_by_every_verb
from support.judge import HudiJudge, JudgeError
from support.judge.options import COPY_ON_WRITE, MERGE_ON_READ, NO_METADATA_TABLE, SIMPLE_INDEX, table_name
from support.pasts import golden
from support.run.command_line import content_of
from support.tables.thresholds import dividing_plan


def rows(found: pa.Table) -> Counter[tuple[str, ...]]:
    return Counter(tuple(repr(as_json(row[name])) for name in PLAIN.names) for row in found.to_pylist())


def test_a_change_that_stopped_halfway_is_read_by_the_backup(judge_111: HudiJudge, tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    before = rows(Table.open(str(path)).snapshot().to_arrow())
    settings = path / ".hoodie" / "hoodie.properties"
    whole = settings.read_text()
    settings.rename(settings.with_name("hoodie.properties.backup"))
    settings.with_name(".hoodie.properties.crc").unlink()
    assert rows(judge_111.read(path)) == rows(Table.open(str(path)).snapshot().to_arrow()) == before
    settings.write_text(whole.replace("hoodie.table.checksum=", "hoodie.table.checksum=1"))
    assert rows(judge_111.read(path)) == rows(Table.open(str(path)).snapshot().to_arrow()) == before


def test_settings_with_a_wrong_checksum_are_no_table(judge_111: HudiJudge, tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    settings = path / ".hoodie" / "hoodie.properties"
    settings.write_text(settings.read_text().replace("hoodie.table.checksum=", "hoodie.table.checksum=1"))
    settings.with_name(".hoodie.properties.crc").unlink()
    with pytest.raises(JudgeError, match=r"hoodie\.properties"):
        judge_111.read(path)
    with pytest.raises(NotAHudiTableError, match=r"hoodie\.table\.checksum"):
        Table.open(str(path)).snapshot()


def test_hadoops_checksum_of_settings_goes_when_eventide_rewrites_them(judge_111: HudiJudge, tmp_path: Path) -> None:
    """Hadoop would refuse the new settings by the old sum."""
    path = golden.unpack("v9_mdt", tmp_path)
    side_file = path / ".hoodie" / ".hoodie.properties.crc"
    old = side_file.read_bytes()
    table = Table.open(str(path), {"eventide.metadata.table": "drop"})
    before = rows(table.snapshot().to_arrow())
    table.compact(dividing_plan(table, "event_ts", "copy"))
    assert not side_file.exists()
    assert rows(judge_111.read(path)) == before
    side_file.write_bytes(old)
    with pytest.raises(JudgeError):
        judge_111.read(path)


@pytest.mark.parametrize(
    "name", ["judge_111", *(pytest.param(name, marks=pytest.mark.broad) for name in ("judge_015", "judge_120"))]
)
def test_a_table_whose_files_lack_partition_columns_is_refused_and_unchanged(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Hudi writes these as copy-on-write tables alone."""
    judge: HudiJudge = request.getfixturevalue(name)
    path, dropped = tmp_path / "dropped", {"hoodie.datasource.write.drop.partition.columns": "true"}
    options = MERGE_ON_READ | COPY_ON_WRITE | SIMPLE_INDEX | NO_METADATA_TABLE | table_name("dropped") | dropped
    columns: dict[str, pa.DataType] = {"id": pa.string(), "part": pa.string(), "event_ts": pa.int64()}
    schema = pa.schema(columns)
    kept = [{"id": key, "part": key[0], "event_ts": 100} for key in ("a1", "b1")]
    judge.write(path, kept, schema, options=options, mode="overwrite")
    files = [pq.read_schema(file).names for file in path.rglob("*.parquet")]
    assert files
    assert not any("part" in names for names in files), "Hudi leaves the column out"
    before = content_of(path)

    refused_by_every_verb(path, dropped)

    assert content_of(path) == before
    assert judge.read(path).select(schema.names).sort_by("id").to_pylist() == kept
