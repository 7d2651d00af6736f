"""Runs a benchmark's module in the environment of PySpark 3.5, with the jar of stock Hudi 1.1.1."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def run_beside_hudi(module: str, place: Path, arguments: list[str]) -> int:
    """The exit code of `python -m MODULE`, which receives the arguments, `--place` and `--jar`."""
    from support.judge.hudi_judge import judge_environment, judge_python
    from support.judge.jars import BUNDLES
    from support.maven import maven_jar

    place.mkdir(parents=True, exist_ok=True)
    environment = judge_environment()
    jar = maven_jar(BUNDLES["1.1.1"], python=judge_python(), environment=environment)
    root = Path(__file__).parents[1]
    sources = [str(root), *(str(root / part) for part in ("core", "adapters", "spark_app"))]
    environment |= {"PYTHONPATH": os.pathsep.join(sources)}
    inside = [str(judge_python()), "-m", module, *arguments, "--place", str(place), "--jar", str(jar)]
    return subprocess.run(inside, env=environment, cwd=root, check=False).returncode
