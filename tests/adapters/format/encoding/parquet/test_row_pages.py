"""Rows of a row group by the pages that hold them: the same as of the whole row group, for few of its bytes."""

import io
import random
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.parquet import row_pages
from eventide_adapters.format.encoding.parquet.open_file import open_base
from eventide_adapters.format.encoding.parquet.row_pages import rows_of, rows_with
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import CorruptBaseFileError
from support.doubles.counting_storage import CountingStorage
from support.pasts import golden

ROWS = 2000
KEYS = [f"{number * 7919 % 100_000:05}" for number in range(ROWS)]
FLAT = ["_hoodie_record_key", "number", "word", "maybe", "load"]


def rows(keys: list[str]) -> pa.Table:
    random.seed(1)
    columns: dict[str, Any] = {
        "_hoodie_record_key": keys,
        "number": pa.array(range(ROWS), pa.int64()),
        "word": [f"word {number % 5}" for number in range(ROWS)],
        "maybe": [None if number % 3 else number / 2 for number in range(ROWS)],
        "load": [random.randbytes(1000) for _ in range(ROWS)],
        "nested": [{"x": number, "y": [number]} for number in range(ROWS)],
    }
    return pa.table(columns)


@pytest.fixture(autouse=True)
def large_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are read as large ones are."""
    monkeypatch.setattr(row_pages, "_ROWS_MIN", 0)


def written(path: Path, table: pa.Table, **words: Any) -> None:
    pq.write_table(
        table,
        path / "base.parquet",
        **{"row_group_size": ROWS, "max_rows_per_page": 100, "write_page_checksum": True} | words,
    )


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("has_index", [False, True])
def test_the_rows_are_those_of_a_whole_read(tmp_path: Path, codec: str, version: str, has_index: bool) -> None:
    table = rows(KEYS)
    written(
        tmp_path,
        table,
        compression=codec,
        data_page_version=version,
        write_page_index=has_index,
        use_dictionary=True if has_index else ["word"],
        row_group_size=1300,
    )
    with open_base(LocalStorage(tmp_path), "base.parquet") as file:
        for group, begin, count in ((0, 0, 1300), (1, 1300, 700)):
            for chosen in ([0], [99, 100, 101], [5, 350, 351, 699], list(range(count))):
                picked = rows_of(file, group, np.array(chosen), FLAT)
                assert picked is not None
                assert pa.table(picked).equals(table.select(FLAT).take([begin + place for place in chosen]))
            for wanted in (["nobody"], KEYS[1350:1353], [KEYS[3], KEYS[1400], KEYS[1999]], KEYS[::100]):
                places = rows_with(file, group, "_hoodie_record_key", wanted)
                assert places is not None
                keys = KEYS[begin : begin + count]
                assert places.tolist() == [place for place, key in enumerate(keys) if key in wanted]
        assert rows_of(file, 0, np.array([1]), ["number", "nested"]) is None
        assert rows_with(file, 0, "number", ["1"]) is None


def test_a_key_of_a_sorted_file_with_page_indexes_takes_a_page_of_each_column(tmp_path: Path) -> None:
    """As Hudi writes a base file: one row group, with page indexes, sorted by its keys."""
    table = rows(sorted(KEYS))
    written(tmp_path, table, write_page_index=True, compression="gzip", use_dictionary=["word"], max_rows_per_page=40)
    storage = CountingStorage(str(tmp_path))
    with open_base(storage, "base.parquet") as file:
        before = storage.bytes_read["base.parquet"]
        places = rows_with(file, 0, "_hoodie_record_key", [table["_hoodie_record_key"][1234].as_py()])
        assert places is not None
        assert places.tolist() == [1234]
        picked = rows_of(file, 0, places, FLAT)
        assert picked is not None
        assert picked.column("number").to_pylist() == [1234]
        assert storage.bytes_read["base.parquet"] - before < file.size / 20


@pytest.mark.parametrize("has_index", [False, True])
def test_a_flipped_bit_is_never_another_row(tmp_path: Path, has_index: bool) -> None:
    """Of pages, their headers, and offset indexes. Column indexes have no checksum, as the footer has none."""
    table = rows(sorted(KEYS)).select(FLAT)
    written(tmp_path, table, write_page_index=has_index, compression="gzip")
    whole = (tmp_path / "base.parquet").read_bytes()
    draw = random.Random(5)
    wanted = [KEYS[5], KEYS[1234]]
    expected = [row for row in table.to_pylist() if row["_hoodie_record_key"] in wanted]
    length = int.from_bytes(whole[-8:-4], "little")
    indexes = pq.ParquetFile(io.BytesIO(whole)).metadata.row_group(0)
    data_end = max(indexes.column(n).dictionary_page_offset or 0 for n in range(5)) or len(whole) - length
    places = [draw.randrange(4, data_end) for _ in range(25)]
    if has_index:
        footer_at = len(whole) - 8 - length
        ends = [indexes.column(n) for n in range(5)]
        last = max(one.data_page_offset for one in ends)
        places += [draw.randrange(last, footer_at) for _ in range(25)]
    outcomes = Counter[str]()
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        (tmp_path / "base.parquet").write_bytes(damaged)
        outcomes[_outcome(tmp_path, wanted, expected)] += 1
    assert outcomes["other rows"] == 0, outcomes


def _outcome(path: Path, wanted: list[str], expected: list[Any]) -> str:
    try:
        with open_base(LocalStorage(path), "base.parquet") as file:
            places = rows_with(file, 0, "_hoodie_record_key", wanted)
            if places is None:
                return "read whole"
            rows = rows_of(file, 0, places, FLAT)
            if rows is None:
                return "read whole"
            return "the rows" if rows.to_pylist() == expected else "other rows"
    except CorruptBaseFileError:
        return "refused"


def test_files_of_hudi_give_the_same_rows(tmp_path: Path) -> None:
    """Base files of the golden tables, as parquet-mr wrote them, most with page indexes."""
    counts = Counter[str]()
    for name in golden.names()[::5]:
        with tarfile.open(golden.DIRECTORY / f"{name}.tar.gz") as archive:
            paths = [m for m in archive.getmembers() if m.name.endswith(".parquet") and "/.hoodie/" not in m.name]
            for member in paths[:3]:
                (tmp_path / "base.parquet").write_bytes(archive.extractfile(member).read())  # type: ignore[union-attr]
                _compare(tmp_path, counts)
    assert counts["by pages"] > 5, counts
    assert counts["with indexes"] > 5, counts


def _compare(path: Path, counts: Counter[str]) -> None:
    with open_base(LocalStorage(path), "base.parquet") as file:
        names = [field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)]
        if not file.metadata.num_rows or names[:3][-1:] != ["_hoodie_record_key"]:
            return
        whole = file.read_row_group(0, names)
        chosen = np.arange(0, len(whole), 7)
        column: Any = whole.column("_hoodie_record_key").take(chosen)
        keys: list[str] = sorted(set(column.to_pylist()))
        places, rows = rows_with(file, 0, "_hoodie_record_key", keys), rows_of(file, 0, chosen, names)
        counts["with indexes"] += file.metadata.row_group(0).column(0).has_offset_index
        if rows is None or places is None:
            return
        counts["by pages"] += 1
        in_order = enumerate(whole.column("_hoodie_record_key").to_pylist())
        assert places.tolist() == [place for place, key in in_order if key in keys]
        assert pa.table(rows).cast(whole.schema).equals(whole.take(chosen))
