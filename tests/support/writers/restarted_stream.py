"""A stream of Hudi that is ended or killed and starts again, and what its checkpoint says that it has taken."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from support.judge import HudiJudge
from support.writers.batches import Batch, put_parquet
from support.writers.spark_writers import STREAMING, write_options

PATIENCE_SECONDS = 240


class RestartedStream:
    """A stream of files, each a micro-batch. Its checkpoint outlives its process."""

    def __init__(self, version: int, path: Path, scratch: Path, files: int) -> None:
        self._version, self._path, self._scratch = version, path, scratch
        self._waiting = put_parquet(scratch / "waiting", [Batch(number) for number in range(files)])
        self._source = scratch / "source"
        self._source.mkdir()
        self._fed = 0

    def feed(self, count: int) -> None:
        for file in self._waiting[self._fed : self._fed + count]:
            file.rename(self._source / file.name)
        self._fed += count

    def begin(self, judge: HudiJudge, options: Mapping[str, str]) -> None:
        options = write_options(judge, self._version, {**STREAMING, **options})
        judge.begin_stream(self._path, self._source, self._scratch / "checkpoint", options=options)

    def has_taken_all(self) -> bool:
        return len(files_taken(self._scratch / "checkpoint")) == self._fed

    @property
    def taken(self) -> str:
        return f"{len(files_taken(self._scratch / 'checkpoint'))} of {self._fed} files taken"

    @property
    def truth(self) -> list[Batch]:
        return [Batch(number) for number in range(self._fed)]


def files_taken(checkpoint: Path) -> set[str]:
    """The files whose micro-batches are completed, by a checkpoint of Spark.

    A micro-batch can have two files: Spark notes a file before it plans the batch, and a process that is killed between
    the two leaves the file to the next batch.
    """
    while True:
        with suppress(FileNotFoundError):  # Spark merges the files that list the input, and removes them
            return _files_taken(checkpoint)


def _files_taken(checkpoint: Path) -> set[str]:
    commits = [int(file.name) for file in checkpoint.glob("commits/*") if file.name.isdigit()]
    if not commits:
        return set()
    end = json.loads((checkpoint / "offsets" / str(max(commits))).read_text().splitlines()[-1])["logOffset"]
    lines = [line for file in checkpoint.glob("sources/0/[0-9]*") for line in file.read_text().splitlines()[1:]]
    return {found["path"] for found in map(json.loads, lines) if found["batchId"] <= end}


def wait_until(is_so: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> bool:
    """Whether it came to be so within so many seconds."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
