"""The same compaction and the same queries on Spark: this environment's PySpark, and PySpark 3.5 in its own."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from eventide import Table
from eventide.rows.reader import Rows
from eventide.spark.engine import SparkEngine, portions
from eventide_adapters.format.slice.merge.record_mergers import RECORD_MERGERS
from eventide_core.errors import CorruptLogBlockError, EngineError
from support.judge.hudi_judge import JudgeUnavailableError, judge_environment, judge_python
from support.pasts import golden
from support.run.real_parts import require_or_skip
from support.tables.small import HOUR_MS, LATER_MS, SOON, make, rows
from support.tables.thresholds import dividing_plan
from support.values import mergers
from support.values.rows import in_order


@pytest.mark.parametrize(
    "name",
    [
        "v6_avro_types",
        pytest.param("v9_avro_types", marks=pytest.mark.broad),
        pytest.param("v9_event_ordered_deletes", marks=pytest.mark.proof),
    ],
)
def test_spark_compacts_as_threads_do(name: str, tmp_path: Path, spark: SparkSession) -> None:
    on_spark = Table.open(str(golden.unpack(name, tmp_path / "spark")))
    on_threads = Table.open(str(golden.unpack(name, tmp_path / "threads")))
    before = in_order(on_threads.snapshot().to_arrow())
    plan = dividing_plan(on_threads, "event_ts", "copy")
    threads = on_threads.compact(plan)
    result = on_spark.compact(plan, engine=spark)
    sizes = {"bytes_written"}  # names of files are in the footers, and compress differently
    assert {k: v for k, v in result.metrics.items() if k not in sizes} == {
        k: v for k, v in threads.metrics.items() if k not in sizes
    }
    assert result.metrics["log_files_linked"] > 0
    assert result.freshness == threads.freshness
    assert in_order(on_spark.snapshot().to_arrow()) == before
    assert in_order(on_spark.read_optimized().to_arrow()) == in_order(on_threads.read_optimized().to_arrow())


@pytest.mark.parametrize("name", ["v9_avro_types", pytest.param("v9_log_only", marks=pytest.mark.broad)])
def test_a_data_frame_holds_the_rows_and_types_that_arrow_does(name: str, tmp_path: Path, spark: SparkSession) -> None:
    rows = Table.open(str(golden.unpack(name, tmp_path))).snapshot()
    frame = rows.to_spark(spark)
    assert frame.columns == rows.schema.names
    assert in_order(frame.toArrow()) == in_order(rows.to_arrow())
    assert python_runs(frame)
    narrow = rows.to_spark(spark, ["amount", "id"])
    assert narrow.columns == ["amount", "id"]
    assert narrow.where("amount > 20").count() == sum(row["amount"] > 20 for row in rows.to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("name", "is_alike"), [("v6_avro_types", True), ("v9_avro_types", True), ("v9_120_grown", False)]
)
def test_spark_reads_base_files_of_the_tables_schema_by_itself(
    name: str, is_alike: bool, tmp_path: Path, spark: SparkSession
) -> None:
    """Where the schema has grown since, types may have been widened, by rules that are Hudi's."""
    rows = Table.open(str(golden.unpack(name, tmp_path))).read_optimized()
    frame = rows.to_spark(spark)
    assert frame.columns == rows.schema.names
    assert in_order(frame.toArrow()) == in_order(rows.to_arrow())
    assert python_runs(frame) != is_alike
    some = rows.to_spark(spark, ["id"], pc.field("id") > "k")
    assert python_runs(some)
    assert some.count() == rows.to_arrow(["id"], pc.field("id") > "k").num_rows


def python_runs(frame: DataFrame) -> bool:
    classic: Any = frame
    return "MapInArrow" in classic._jdf.queryExecution().toString()


def test_a_read_optimized_query_of_logs_alone_is_an_empty_data_frame(tmp_path: Path, spark: SparkSession) -> None:
    frame = Table.open(str(golden.unpack("v9_log_only", tmp_path))).read_optimized().to_spark(spark)
    assert frame.count() == 0
    assert "event_ts" in frame.columns


def test_a_typed_error_of_a_task_comes_back_as_itself(spark: SparkSession) -> None:
    def fail(item: int) -> int:  # in here, for executors cannot import the tests
        if item == 1:
            raise CorruptLogBlockError("torn")
        return item

    with pytest.raises(CorruptLogBlockError, match="torn"):
        SparkEngine(spark).map(fail, [0, 1])


def test_any_other_failure_of_a_task_is_the_engines(spark: SparkSession) -> None:
    def fail(item: int) -> int:
        if item == 1:
            raise ValueError("unforeseen")
        return item

    with pytest.raises(EngineError, match="ValueError: unforeseen; nothing was committed"):
        SparkEngine(spark).map(fail, [0, 1])


def test_each_task_is_reported_as_it_ends(spark: SparkSession) -> None:
    ended: list[int] = []
    assert SparkEngine(spark).map(abs, [-1, -2, -3], on_done=lambda: ended.append(1)) == [1, 2, 3]
    assert len(ended) == 3


def test_the_callers_job_group_is_theirs_again(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "what I do", interruptOnCancel=False)
    SparkEngine(spark).map(abs, [-1])
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    assert context.getLocalProperty("spark.job.description") == "what I do"
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # how PySpark clears one
    SparkEngine(spark).map(abs, [-1])
    assert context.getLocalProperty("spark.jobGroup.id") is None


def test_an_answer_of_many_pieces_comes_back_whole(spark: SparkSession) -> None:
    assert [len(found) for found in SparkEngine(spark).map(bytes, [3, 40 << 20, 0])] == [3, 40 << 20, 0]


@pytest.mark.broad
def test_very_many_items_share_tasks_and_keep_their_order(spark: SparkSession) -> None:
    def with_task(item: int) -> tuple[int, int]:
        context = TaskContext.get()
        assert context is not None
        return item, context.partitionId()

    ended: list[int] = []
    tasks = 32 * spark.sparkContext.defaultParallelism
    answers = SparkEngine(spark).map(with_task, range(3 * tasks), on_done=lambda: ended.append(1))
    assert [item for item, _ in answers] == list(range(3 * tasks))
    assert len({task for _, task in answers}) == tasks
    assert len(ended) == 3 * tasks
    # So do fewer, where they are small; none of them waits for a large one.
    sizes = [1 << 20] * 40 + [1 << 30] + [1 << 20] * 24
    tasks_of = dict(SparkEngine(spark).map(with_task, range(65), sizes=sizes))
    assert list(tasks_of) == list(range(65))
    assert [item for item, task in tasks_of.items() if task == tasks_of[40]] == [40]
    assert len(set(tasks_of.values())) == 6


@pytest.mark.parametrize("cores", [1, 2, 100])
def test_small_slices_share_a_task_as_long_as_every_core_has_some(cores: int) -> None:
    sizes = [100 << 10] * 640
    shared = portions(sizes, cores)
    assert [place for portion in shared for place in portion] == list(range(640))
    assert len(shared) >= 4 * cores
    assert sum(sizes[place] for place in shared[0]) <= 16 << 20


def test_a_few_slices_have_a_task_each() -> None:
    assert portions([5, 1 << 30, 0], 2) == [range(1), range(1, 2), range(2, 3)]


ON_SPARK_35 = """
import json, sys
import eventide
import pyspark
from eventide import Table
from eventide.spark.engine import spark_session
path, threshold = sys.argv[1:]
def streamed(session, frame):
    frame.limit(5).write.parquet(path + ".in")
    source = session.readStream.schema(frame.schema).parquet(path + ".in")
    sink = eventide.stream_sink(path, {"hoodie.bucket.index.num.buckets": 2})
    writer = source.writeStream.foreachBatch(sink).option("checkpointLocation", path + ".checkpoint")
    for _ in range(2):
        writer.trigger(availableNow=True).start().awaitTermination()
    try:
        eventide.register(session)
    except ValueError as refused:
        return [len(table.state().timeline.writes), str(refused)]
session = spark_session("local[2]")
table = Table.open(path)
before = table.snapshot().to_spark(session).count()
result = table.compact(table.plan_compaction(int(threshold), link_mode="copy"), engine=session)
frame = table.snapshot().to_spark(session)
print("ANSWER" + json.dumps({
    "version": pyspark.__version__, "before": before, "after": frame.count(), "types": dict(frame.dtypes),
    "read_optimized": table.read_optimized().to_spark(session).count(), "metrics": result.metrics,
    "streamed": streamed(session, frame.select(*table.snapshot().schema.names[5:])),
}))
"""


@pytest.mark.proof  # `./run compat lowest` runs the smoke tests on it
def test_pyspark_35_compacts_and_reads(tmp_path: Path) -> None:
    try:
        python, environment = judge_python(), judge_environment()
    except JudgeUnavailableError as missing:
        require_or_skip(f"PySpark 3.5 can't run here: {missing}")
    path = golden.unpack("v9_avro_types", tmp_path)
    twin = Table.open(str(golden.unpack("v9_avro_types", tmp_path / "twin")))
    plan = dividing_plan(twin, "event_ts", "copy")
    done = subprocess.run(
        [str(python), "-c", ON_SPARK_35, str(path), str(plan.cut_ms)],
        env=environment | {key: value for key, value in os.environ.items() if key in ("HOME", "PYTHONPATH")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.rpartition("ANSWER")[2])
    assert answer["version"].startswith("3.5.")
    rows = twin.snapshot().to_arrow().num_rows
    assert (answer["before"], answer["after"]) == (rows, rows)
    assert answer["metrics"]["log_files_linked"] == twin.compact(plan).metrics["log_files_linked"] > 0
    assert answer["read_optimized"] == twin.read_optimized().to_arrow().num_rows
    writes, refused = answer["streamed"]
    assert writes == 1 + len(Table.open(str(twin.uri)).state().timeline.writes)
    assert "needs Spark 4" in refused
    assert answer["types"]["fare"] == "decimal(10,2)"
    assert answer["types"]["place"] == "struct<name:string,lat:double,floor:int>"


@pytest.mark.broad
def test_executors_merge_by_a_class_of_the_user(tmp_path: Path, spark: SparkSession) -> None:
    strategy = "3f1c5a1e-6d2b-4f58-9a51-0d8f4a3f7c21"
    path = tmp_path / "t"
    make(path, 9)
    properties = path / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if not line.startswith("hoodie.record.merge")]
    own = ["hoodie.record.merge.mode=CUSTOM", f"hoodie.record.merge.strategy.id={strategy}"]
    properties.write_text("\n".join([*kept, *own]) + "\n")
    module = tmp_path / "lake_mergers.py"
    shutil.copy(mergers.__file__, module)
    spark.sparkContext.addPyFile(str(module))  # as `--py-files` of spark-submit
    options: dict[str, str] = {**SOON, RECORD_MERGERS: f"{strategy}=lake_mergers:Joined"}
    table = Table.open(path, options, engine=spark)
    for hours, word in ((0, "a"), (1, "bb"), (5, "c")):
        table.upsert(spark.createDataFrame(rows(("k0", hours, word), ("k1", hours, word))))

    def words(found: Rows) -> dict[str, str]:
        return {row["id"]: row["word"] for row in found.to_spark(spark).toArrow().to_pylist()}

    assert words(table.snapshot()) == {"k0": "abbc", "k1": "abbc"}
    table.compact(before=LATER_MS - 9 * HOUR_MS)  # between the second write and the third
    assert words(table.read_optimized()) == {"k0": "abb", "k1": "abb"}
    assert words(table.snapshot()) == {"k0": "abbc", "k1": "abbc"}
    assert table.verify(deep=True).ok


@pytest.mark.parametrize("has_to_arrow", [True, False], ids=["Spark 4", "Spark 3.5"])
def test_a_merge_collects_a_data_frame(
    has_to_arrow: bool, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", 0, "a"), ("k1", 0, "a")))
    source = spark.createDataFrame(rows(("k1", 1, "b"), ("k2", 1, "b")))
    none = source.limit(0)
    if not has_to_arrow:
        for kind in type(source).__mro__:
            if "toArrow" in vars(kind):
                monkeypatch.delattr(kind, "toArrow")
        assert not hasattr(source, "toArrow")
    table.merge(source, when_matched_update=True, when_not_matched_insert=True)
    table.merge(none, when_matched_update=True)
    words = {row["id"]: row["word"] for row in table.snapshot().to_arrow().to_pylist()}
    assert words == {"k0": "a", "k1": "b", "k2": "b"}
