"""Timestamps without a zone in new base files: plain numbers for Hudi 0.15 and 1.0, marked as timestamps for 1.1."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from support.judge import HudiJudge
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), ms=pa.int64(), at=pa.timestamp("us"))
AT = datetime(2020, 1, 1, 0, 0, 0, 5000)  # noqa: DTZ001
AT_US = 1_577_836_800_005_000
OF_LOGS_ALONE = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}


@pytest.mark.parametrize(
    ("name", "version", "shown"), [("judge_015", 6, AT_US), ("judge_102", 8, AT_US), ("judge_111", 9, AT)]
)
def test_a_new_file_group_has_the_form_of_the_hudi_whose_table_version_it_is(
    name: str, version: int, shown: object, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(name)
    rows = pa.Table.from_pylist([{"id": "a", "ms": 10, "at": AT}, {"id": "b", "ms": 10, "at": None}], schema=SCHEMA)
    words: Any = {"schema": SCHEMA, "record_key": "id", "event_time": "ms", "version": version}

    written = Table.create(str(tmp_path / "written"), **words)
    written.bulk_insert(rows)
    compacted = Table.create(str(tmp_path / "compacted"), **words, options=OF_LOGS_ALONE)
    compacted.upsert(rows)
    assert compacted.compact(before="2026-01-01T00:00Z").instant is not None

    for table in (written, compacted):
        for query in ("snapshot", "read_optimized"):
            told = judge.read(table.uri, query).to_pylist()
            assert {row["id"]: row["at"] for row in told} == {"a": shown, "b": None}, (table.uri, query)
        assert {row["id"]: row["at"] for row in table.snapshot().to_arrow().to_pylist()} == {"a": AT, "b": None}
