"""Spark's legacy calendar in log blocks: Hudi writes its days, and no block records it, so that no reader can know."""

from datetime import date
from pathlib import Path
from uuid import uuid4

import pytest

from eventide import Table
from support.judge import HudiJudge
from support.judge.deeds import Statements

SETTINGS = {
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
}


@pytest.mark.proof
@pytest.mark.parametrize("block", ["avro", "parquet"])
def test_days_of_the_legacy_calendar_in_log_blocks(block: str, tmp_path: Path, judge_111: HudiJudge) -> None:
    path, name = tmp_path / "t", f"calendar_{uuid4().hex}"
    statements = (
        (
            f"create table {name} (id string, d date, ms bigint, part string) using hudi tblproperties (type = 'mor', "
            f"primaryKey = 'id', preCombineField = 'ms') partitioned by (part) location '{path}'"
        ),
        f"insert into {name} values ('a', date'2000-01-01', 1, 'x')",
        f"set hoodie.logfile.data.block.format={block}",
        "set hoodie.spark.sql.merge.into.partial.updates=false",
        "set spark.sql.avro.datetimeRebaseModeInWrite=LEGACY",
        "set spark.sql.parquet.datetimeRebaseModeInWrite=LEGACY",
        f"update {name} set ms = 2, d = date'1500-06-01' where id = 'a'",
    )
    (failure,) = judge_111.together([[Statements(statements, SETTINGS)]])
    assert failure is None, failure
    (log,) = (file for file in path.glob("part=x/.*.log.*") if file.suffix != ".crc")
    assert b"legacyDateTime" not in log.read_bytes()
    (row,) = Table.open(str(path)).snapshot().to_arrow().to_pylist()
    assert row["d"] == date(1500, 6, 11)  # the day that a Julian calendar calls 1500-06-01
