"""Does what lines of JSON ask for with the eventide that it imports, each in a fork that can be killed or stopped.

python one_version.py

A line is `{"path", "verb", "arguments", "options", "signal", "before"}`, the signal strikes before that change of the file
system; or `{"wake": PID}` for a fork that stopped. Its answer is a line: `{"ok": RESULT}`, `{"error", "exit_code", "line"}`,
`{"died": true}` or `{"stopped": PID}`. What a fork has imported is imported here, too, so that later forks needn't. The
public API is all it uses: it also runs with the packages of a release.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from eventide import EventideError, Table

_COLUMNS: dict[str, pa.DataType] = {"id": pa.string(), "ms": pa.int64(), "word": pa.string()}
SCHEMA = pa.schema(_COLUMNS)
OPTIONS = {
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.payload.event.time.field": "ms",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.write.lock.wait_time_ms": "300",
    "eventide.pending.write.wait_ms": "300",
    "hoodie.time.generator.max_expected_clock_skew_time_ms": "1",
}
_CHANGES = {"os.rename", "os.remove", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate", "os.utime"}
_WRITING = os.O_WRONLY | os.O_RDWR
_answers: dict[int, int] = {}
"""The file in which a fork leaves its answer."""


def _rows(rows: list[list[Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=False)) for row in rows], schema=SCHEMA)


def _listed(rows: pa.Table) -> list[list[Any]]:
    return sorted([row["id"], row["ms"], row["word"]] for row in rows.select(SCHEMA.names).to_pylist())


def _write(table: Table, rows: list[list[Any]]) -> str:
    """Rows with a word are upserted, or rows without one deleted."""
    if rows[0][2] is None:
        return table.delete(_rows(rows).drop_columns(["word"])).instant
    return table.upsert(_rows(rows)).instant


def _take(table: Table, **how: Any) -> Any:
    window = table.windows(every="1h", consumer="bills", **how).take("runner")
    return None if window is None else [window.token, window.begin_ms, window.end_ms, _listed(window.to_arrow())]


def _done(table: Table, token: int) -> None:
    window = table.windows(every="1h", consumer="bills").open_window(token)
    assert window is not None
    window.done()


def _look(table: Table) -> Any:
    freshness = table.freshness()
    return {
        "rows": _listed(table.snapshot().to_arrow()),
        "optimized": _listed(table.read_optimized().to_arrow()),
        "watermark": freshness.watermark_ms,
        "tags": {tag.name: [tag.instant, _listed(table.snapshot(tag=tag.name).to_arrow())] for tag in table.tags()},
        "history": [[entry.instant, entry.action, entry.state] for entry in table.history()],
    }


VERBS: Mapping[str, Callable[..., Any]] = {
    "write": _write,
    "schedule": lambda table, **how: str(table.schedule(table.plan_compaction(**how)).idle),
    "compact": lambda table, **how: table.compact(**how).instant,
    "execute": lambda table, instant: table.execute(instant).instant,
    "resume": lambda table: [*table.resume().resumed],
    "rollback": lambda table, instant, **how: table.rollback(instant, **how),
    "clean": lambda table: len(table.clean().deleted),
    "archive": lambda table: table.archive(),
    "tag": lambda table, name: table.tag(name).instant,
    "delete_tag": lambda table, name: table.delete_tag(name),
    "restore": lambda table, instant: table.restore(instant),
    "rebuild": lambda table, indexes: [*table.rebuild_metadata_table(indexes).partitions],
    "take": _take,
    "done": _done,
    "look": _look,
    "verify": lambda table: [str(check) for check in table.verify(deep=True).failed],
}


def _answer(path: str, verb: str, arguments: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    try:
        if verb == "create":
            Table.create(path, schema=SCHEMA, record_key="id", event_time="ms", options=OPTIONS, **arguments)
            return {"ok": None}
        return {"ok": VERBS[verb](Table.open(path, {**OPTIONS, **options}), **arguments)}
    except EventideError as error:
        return {"error": type(error).__name__, "exit_code": error.exit_code, "line": str(error)}


def _strike(number: int, at: int) -> None:
    """This process gets the signal before so many changes of the file system, counted from 0."""
    left = at

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in _CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING):
            left -= 1
            if left == -1:
                os.kill(os.getpid(), number)

    sys.addaudithook(count)


def _fork(command: Mapping[str, Any]) -> int:
    file = os.memfd_create("answer")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if "signal" in command:
                _strike(command["signal"], command["before"])
            given = (command["path"], command["verb"], command.get("arguments", {}), command.get("options", {}))
            before = {*sys.modules}
            answer = _answer(*given)
            os.write(file, json.dumps({**answer, "imported": [*({*sys.modules} - before)]}).encode())
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    _answers[pid] = file
    return pid


def _awaited(pid: int) -> dict[str, Any]:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return {"stopped": pid}
    with open(_answers.pop(pid), "rb") as file:
        if os.WIFSIGNALED(status):
            return {"died": True}
        file.seek(0)
        answer: dict[str, Any] = json.loads(file.read())
    for name in answer.pop("imported"):
        importlib.import_module(name)
    return answer


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    _say(sys.modules["eventide"].__file__)
    for line in sys.stdin:
        command = json.loads(line)
        if "wake" in command:
            os.kill(command["wake"], signal.SIGCONT)
        _say(_awaited(command.get("wake") or _fork(command)))


if __name__ == "__main__":
    main()
