"""What Hudi writes into the footers of base files is also there after a compaction by eventide, over all golden tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from support.files.base_footers import footers_of
from support.pasts import golden

pytestmark = pytest.mark.broad

# Spark's own types, which only Spark's row writer notes, in bulk inserts: a compaction of Hudi leaves it out, too.
LEFT_OUT = {"org.apache.spark.sql.parquet.row.metadata"}
OURS = {"eventide.merge_result", "writer.model.name", "parquet.avro.schema", "org.apache.spark.version"}
# What describes the rows of the file, and the program that wrote it.
OF_THE_FILE = {
    "hoodie_min_record_key",
    "hoodie_max_record_key",
    "org.apache.hudi.bloomfilter",
    "org.apache.spark.version",
}
# A pending action excludes a plan; copy-on-write tables have nothing to compact.
UNPLANNED = {"v6_clustering_planned", "v9_clustering_planned", "v6_inflight", "v6_copy_on_write", "v9_copy_on_write"}


@pytest.mark.parametrize("name", [name for name in golden.names() if name not in UNPLANNED])
def test_a_compaction_keeps_each_pair_of_hudis_footers(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    theirs = footers_of(path)
    Table.open(str(path)).compact(before="2026-11-27T00:00Z")
    ours = {file: pairs for file, pairs in footers_of(path).items() if file not in theirs}
    for pairs in ours.values():
        for other in theirs.values():
            assert other.keys() - pairs.keys() <= LEFT_OUT
            assert pairs.keys() - other.keys() <= OURS
            for key in other.keys() & pairs.keys() - OF_THE_FILE:
                assert _value(pairs[key]) == _value(other[key]), key


def _value(text: str) -> Any:
    """JSON as such: Hudi's versions order its properties in several ways."""
    return json.loads(text) if text.startswith("{") else text
