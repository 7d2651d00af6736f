"""The options of Hudi 0.15 to 1.2: each is honored, refused, or known to change no row.

`options_without_effect_on_rows.txt` has those that change neither where a key lives, nor what a value is, nor which row
wins. An option that a new Hudi brings is in none of the lists, and fails here until somebody has judged it.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.options.sections import all_options
from eventide_core.action.write.refused_options import OF_THE_TABLE, REFUSED, REFUSED_FOR_QUERIES
from eventide_core.errors import ConfigError, UnsupportedTableError
from support.judge import HudiJudge
from support.judge.options import EVENT_TIME_ORDERING, MERGE_ON_READ, table_name, table_version
from support.values.columns import schema_of

WITHOUT_EFFECT = Path(__file__).parent / "options_without_effect_on_rows.txt"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
RULE = "part=a,4"
EXPRESSIONS = "hoodie.bucket.index.partition.expressions"
BY_PARTITION = {EXPRESSIONS: RULE}
SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64(), word=pa.string())


def rows(word: str) -> pa.Table:
    keys = range(40)
    return pa.Table.from_pylist(
        [{"id": f"k{n}", "part": "ab"[n % 2], "event_ts": 1, "word": word} for n in keys], schema=SCHEMA
    )


def check_that_each_is_judged(judge: HudiJudge) -> None:
    honored = {name for option in all_options() for name in option.names}
    refused = {*REFUSED, *REFUSED_FOR_QUERIES, *(key for setting in OF_THE_TABLE for key in setting.keys)}
    judged = honored | refused | set(WITHOUT_EFFECT.read_text().split())
    below = tuple(name.removesuffix("*") for name in honored if name.endswith(".*"))
    declared = judge.option_keys()
    assert len(declared) > 500
    assert sorted(key for key in declared - judged if not key.startswith(below)) == []


def test_no_option_is_in_two_lists() -> None:
    honored = {name for option in all_options() for name in option.names}
    refused = {*REFUSED, *REFUSED_FOR_QUERIES}
    harmless = WITHOUT_EFFECT.read_text().split()
    assert sorted(set(harmless)) == harmless
    assert set(harmless).isdisjoint(honored | refused)
    assert refused.isdisjoint(honored)


def test_each_option_of_hudi_111_is_judged(judge_111: HudiJudge) -> None:
    check_that_each_is_judged(judge_111)


@pytest.mark.broad
def test_each_option_of_hudi_015_is_judged(judge_015: HudiJudge) -> None:
    check_that_each_is_judged(judge_015)


@pytest.mark.broad
def test_each_option_of_hudi_102_is_judged(judge_102: HudiJudge) -> None:
    check_that_each_is_judged(judge_102)


@pytest.mark.broad
def test_each_option_of_hudi_120_is_judged(judge_120: HudiJudge) -> None:
    check_that_each_is_judged(judge_120)


def test_buckets_by_partition_are_refused_where_the_writer_names_them(judge_111: HudiJudge, tmp_path: Path) -> None:
    options = MERGE_ON_READ | table_name("buckets") | table_version(9) | EVENT_TIME_ORDERING | BUCKETS | BY_PARTITION
    judge_111.write(tmp_path, rows("first"), options=options)
    table = Table.open(str(tmp_path), {**BUCKETS, **BY_PARTITION})
    with pytest.raises(ConfigError, match=EXPRESSIONS):
        table.upsert(rows("second"))
    with pytest.raises(ConfigError, match=EXPRESSIONS):
        table.delete(rows("second").select(["id", "part"]))
    judge_111.write(tmp_path, rows("third"), options=options)
    assert judge_111.read(tmp_path).column("word").to_pylist() == ["third"] * 40
    assert table.snapshot().to_arrow().num_rows == 40


def test_buckets_by_partition_are_refused_where_stock_stored_their_rule(judge_111: HudiJudge, tmp_path: Path) -> None:
    table = Table.create(
        str(tmp_path), schema=SCHEMA, record_key="id", partition="part", event_time="event_ts", options=BUCKETS
    )
    table.upsert(rows("first"))
    settings = ",".join(f"{key}={value}" for key, value in BUCKETS.items())
    judge_111.sql(f"create table by_partition using hudi location '{tmp_path}'")
    judge_111.sql(
        f"call partition_bucket_index_manager(table => 'by_partition', overwrite => '{RULE}', rule => 'regex', "
        f"bucket_number => 2, dry_run => false, options => '{settings}')"
    )
    assert judge_111.count(tmp_path) == 40
    with pytest.raises(UnsupportedTableError, match="their number differs by partition"):
        table.upsert(rows("second"))
    assert judge_111.read(tmp_path).column("word").to_pylist() == ["first"] * 40
    assert table.snapshot().to_arrow().num_rows == 40
