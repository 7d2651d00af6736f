"""What benchmarks beside stock Hudi 1.1.1 in one session of PySpark 3.5 share: how they are started, and their rows."""

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def run_beside_hudi(module: str, place: Path, arguments: list[str]) -> int:
    """The exit code of `python -m MODULE`, which receives the arguments, `--place` and `--jar`."""
    from support.judge.hudi_judge import judge_environment, judge_python
    from support.judge.jars import BUNDLES
    from support.run.maven import maven_jar

    place.mkdir(parents=True, exist_ok=True)
    environment = judge_environment()
    jar = maven_jar(BUNDLES["1.1.1"], python=judge_python(), environment=environment)
    root = Path(__file__).parents[1]
    sources = [str(root), *(str(root / part) for part in ("core", "adapters", "spark_app", "tests"))]
    environment |= {"PYTHONPATH": os.pathsep.join(sources)}
    inside = [str(judge_python()), "-m", module, *arguments, "--place", str(place), "--jar", str(jar)]
    return subprocess.run(inside, env=environment, cwd=root, check=False).returncode


def versions_of(numbers: "DataFrame", event_ts: int, partitions: int) -> "DataFrame":
    """A row for each number of the column `id`: its key, its partition, and other columns of this version of the row."""
    from pyspark.sql import functions

    key = functions.format_string("key-%012d", functions.col("id"))
    return numbers.select(
        key.alias("id"),
        functions.format_string("p%d", functions.col("id") % partitions).alias("part"),
        functions.lit(event_ts).cast("long").alias("event_ts"),
        functions.sha2(functions.concat(key, functions.lit(event_ts)), 256).alias("word"),
        (functions.col("id") * 1.5 + event_ts).alias("amount"),
    )
