"""The decode cache of an observer hides nothing: neither other bytes under the same name, nor a wrong reader."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.testing.histories import Layout, put
from eventide.testing.inspection.observation import Observer
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Order
from eventide_adapters.format.slice.merge import log_fold, slice_reader
from eventide_core.config import LinkChoice


@pytest.fixture
def table() -> LivingTable:
    """One that its observer has looked at after each of three writes."""
    table = LivingTable(Layout(9, Order.EVENT_TIME), LinkChoice.COPY, "observed")
    table.write((put("k0", 1, "base"), put("k1", 1, "base")))
    table.write((put("k0", 2, "second"),))
    table.write((put("k1", 3, "third"),))
    return table


def _other_log_file(data: bytes) -> bytes:
    return data.replace(b"second", b"sneaky")


def _other_base_file(data: bytes) -> bytes:
    rows = pq.read_table(io.BytesIO(data))
    place = rows.column_names.index("word")
    sink = io.BytesIO()
    pq.write_table(rows.set_column(place, "word", pa.array(["bass"] * len(rows))), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("suffix", "word", "other"), [(".log", b"second", _other_log_file), (".parquet", b"base", _other_base_file)]
)
def test_other_bytes_under_the_same_name_are_seen(
    table: LivingTable, suffix: str, word: bytes, other: Callable[[bytes], bytes]
) -> None:
    storage, instants = table.bench.storage, table.account.oracle.instants
    before = table.observer.look(table.bench.process(), instants)
    (path,) = (p for p, file in table.files.items() if suffix in p and word in file.data and p.startswith("part="))
    storage.put(path, other(storage.read(path)))
    after = table.observer.look(table.bench.process(), instants)
    assert after != before
    assert after.as_of == Observer().look(table.bench.process(), instants).as_of


def test_a_merge_that_goes_wrong_is_found_at_the_next_write(
    table: LivingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(codes: Any, key_count: int, *_: object) -> Any:
        return np.array([int(np.flatnonzero(codes == code)[0]) for code in range(key_count)], np.int64)

    monkeypatch.setattr(log_fold, "winners", first)
    with pytest.raises(AssertionError, match="I1, "):
        table.write((put("k0", 4, "fourth"),))


def test_an_increment_with_rows_of_other_commits_is_found_at_the_next_write(
    table: LivingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_reader, "of_commits", lambda batch, _: batch)

    def goes_on() -> None:
        table.write((put("k0", 4, "fourth"),))
        table.schedule(3)
        table.execute()
        table.write((put("k2", 9, "fifth"),))

    with pytest.raises(AssertionError, match="I3, "):
        goes_on()
