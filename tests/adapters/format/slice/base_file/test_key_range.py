"""The range of keys in a base file's footer, which no checksum of Parquet covers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from eventide import Table
from eventide_adapters.format.slice.base_file.key_range import MAX_KEY_FOOTER, MIN_KEY_FOOTER
from eventide_core.errors import CorruptBaseFileError
from support.tables.append import make, rows

VALUE_AFTER = 2  # the header of the field, and the length of its value

READS: dict[str, Callable[[Table], object]] = {
    "a key": lambda table: table.snapshot().to_arrow(None, "id = 'k1'"),
    "an upsert": lambda table: table.upsert(rows(("k1", "a", 9, "new"))),
}


@pytest.mark.parametrize("end", [MIN_KEY_FOOTER, MAX_KEY_FOOTER])
def test_a_stated_key_that_is_not_text_is_a_typed_error(end: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, "BLOOM")
    table.insert(rows(*((f"k{number}", "a", number, "word") for number in range(9))))
    (base,) = tmp_path.rglob("*.parquet")
    data = bytearray(base.read_bytes())
    data[data.index(end.encode()) + len(end) + VALUE_AFTER] = 0xB1
    base.write_bytes(data)
    for read in READS.values():
        with pytest.raises(CorruptBaseFileError, match=f"{base.name}.*isn't text"):
            read(Table.open(table.uri))
    assert "records-readable" in str(table.verify(deep=True))
