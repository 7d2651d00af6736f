"""Record keys that don't agree with the key fields."""

import pyarrow as pa
import pytest

from eventide_adapters.format.slice.comparison.content_audit import wrong_keys
from eventide_core.table.settings.key_format import KeyFormat


@pytest.mark.parametrize(
    ("fields", "stored", "wrong"),
    [
        (("id",), ["a", "b", "c", "d"], []),
        (("id",), ["id:a", "id:b", "id:c", "id:d"], []),
        (("id",), ["a", "x", "c", "d"], ["x"]),
        (("id", "n"), ["id:a,n:1", "id:b,n:2", "id:c,n:3", "id:d,n:__null__"], []),
        (("id", "n"), ["id:a,n:1", "id:b,n:9", "id:c,n:3", "id:d,n:__null__"], ["id:b,n:9"]),
        (("moment",), ["x", "x", "x", "x"], []),
        (("absent",), ["x", "x", "x", "x"], []),
    ],
)
def test_wrong_keys_are_those_that_the_fields_do_not_give(
    fields: tuple[str, ...], stored: list[str], wrong: list[str]
) -> None:
    """A null has a name of its own, and a time has several forms: neither is compared."""
    records = pa.RecordBatch.from_pydict(
        {
            "_hoodie_record_key": pa.array(stored),
            "id": pa.array(["a", "b", "c", "d"]),
            "n": pa.array([1, 2, 3, None], pa.int64()),
            "moment": pa.array([0, 1, 2, 3], pa.timestamp("us")),
        }
    )
    keys = KeyFormat(fields, (), is_hive_style=False, is_url_encoded=False, names_key_fields=len(fields) > 1)
    assert wrong_keys(records, keys) == wrong
