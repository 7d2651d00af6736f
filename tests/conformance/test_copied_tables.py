"""A table of version 6 that is copied, read by Hudi 1.x, which takes the times of completed files for completion times.

Where all of these are later than every base file, Hudi merges the log files of earlier slices into the latest one again.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from support.judge import HudiJudge
from support.judge.options import (
    BLOOM_INDEX,
    DEFAULT_PAYLOAD,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    table_name,
    table_version,
)

SCHEMA = pa.schema([(name, pa.int64() if name == "event_ts" else pa.string()) for name in ("id", "part", "event_ts")])
OPTIONS = {
    **MERGE_ON_READ,
    **BLOOM_INDEX,
    **DEFAULT_PAYLOAD,
    **NO_METADATA_TABLE,
    **table_name("copied"),
    # An insert gets into the file group of the deleted record.
    "hoodie.parquet.small.file.limit": "104857600",
}


@pytest.mark.proof
def test_a_copy_with_other_times_loses_a_record_to_hudi_unless_upgraded_first(
    tmp_path: Path, judge_111: HudiJudge
) -> None:
    table = tmp_path / "table"
    of_version_6 = {**OPTIONS, **table_version(6)}
    for number, (operation, keys) in enumerate((("upsert", "ab"), ("delete", "a"), ("", ""), ("upsert", "ac"))):
        if operation:
            rows = [{"id": key, "part": "p", "event_ts": number} for key in keys]
            judge_111.write(table, rows, SCHEMA, options=of_version_6, operation=operation)
        else:
            judge_111.schedule_compaction(table, of_version_6)
            judge_111.run_compaction(table, of_version_6)

    def read(name: str, copy_function: Callable[[str, str], object]) -> tuple[set[object], set[object], bool]:
        """What Hudi and what eventide read in a copy, and whether `verify` remarks on its times."""
        copy = shutil.copytree(table, tmp_path / name, copy_function=copy_function)
        ours = Table.open(str(copy))
        verified = ours.verify(deep=True)
        assert verified.ok
        is_named = any("without times" in remark for check in verified.checks for remark in check.remarks)
        theirs, own = judge_111.read(copy)["id"].to_pylist(), ours.snapshot().to_arrow(["id"])["id"].to_pylist()
        return set(theirs), set(own), is_named

    assert read("with times", shutil.copy2) == (set("abc"), set("abc"), False)
    assert read("without times", shutil.copyfile) == (set("bc"), set("abc"), True)
    judge_111.sql(f"create table copied using hudi location '{table}'")
    judge_111.call("upgrade_table", table="copied", to_version="EIGHT")
    judge_111.sql("drop table copied")
    assert "hoodie.table.version=8\n" in (table / ".hoodie/hoodie.properties").read_text()
    assert read("upgraded", shutil.copyfile) == (set("abc"), set("abc"), False)
