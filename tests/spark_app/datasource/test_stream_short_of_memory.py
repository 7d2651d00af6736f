"""A compaction beside a stream whose thread can't start, or dies before its first line."""

from collections.abc import Callable
from typing import Any

import pytest

from eventide.datasource import streaming
from eventide.datasource.streaming import StreamCompaction, StreamSink
from eventide.table.table_service import Round
from eventide_core.access import threads
from eventide_core.table.settings.write_shape import WriteOperation


class Resumed:
    """The table, and its service, that counts its compactions."""

    def __init__(self, *errors: Exception) -> None:
        self.times, self._errors = 0, list(errors)

    def open(self, *_: object, **__: object) -> "Resumed":
        return self

    def service(self) -> "Resumed":
        return self

    def schedule(self) -> Round:
        return Round()

    def resume(self, _: object) -> Round:
        self.times += 1
        if self._errors:
            raise self._errors.pop()
        return Round()


def refused(*_: object) -> int:
    raise RuntimeError("can't start new thread")


def dead(*_: object) -> int:
    return 0


@pytest.mark.parametrize(("start", "times"), [(refused, 0), (dead, 1)])
def test_the_next_batch_goes_on_without_the_thread(
    start: Callable[..., int], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, spark = Resumed(), None
    monkeypatch.setattr(streaming, "Table", table)
    sink = StreamSink("table", {}, WriteOperation.UPSERT, StreamCompaction.ASYNC)
    with monkeypatch.context() as patch:
        patch.setattr(threads, "start_new_thread", start)
        batch(sink, spark)
    assert table.times == 0
    batch(sink, spark)
    sink.wait()
    assert table.times == times + 1


def test_an_error_beside_the_stream_is_logged_and_the_next_batch_tries_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table, spark = Resumed(ValueError("odd")), None
    monkeypatch.setattr(streaming, "Table", table)
    sink = StreamSink("table", {}, WriteOperation.UPSERT, StreamCompaction.ASYNC)
    for _ in range(2):
        batch(sink, spark)
        sink.wait()
    assert table.times == 2
    assert "ValueError: odd" in caplog.text


def batch(sink: StreamSink, spark: Any) -> None:
    """What follows each batch."""
    sink._compact(spark, None)
