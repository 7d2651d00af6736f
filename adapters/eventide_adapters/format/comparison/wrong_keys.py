"""Compares record keys with the key fields of their rows."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide_core.table.records.schema import RECORD_KEY
from eventide_core.table.settings.key_format import KeyFormat


def wrong_keys(records: pa.RecordBatch, keys: KeyFormat) -> list[str]:
    """The record keys that the key fields don't give.

    Compares only texts and whole numbers, whose form in a key is the same in every Hudi version. With one field, a key may
    be the value or name its field: the versions differ.
    """
    at = records.schema.get_all_field_indices
    if any(len(at(name)) != 1 or not _has_one_form(records.schema.field(name).type) for name in keys.key_fields):
        return []
    parts: list[Any] = [records.column(name).cast(pa.string()) for name in keys.key_fields]
    named: list[Any] = []
    for name, part in zip(keys.key_fields, parts, strict=True):
        named += [f"{',' if named else ''}{name}:", part]
    stored: Any = records.column(RECORD_KEY)
    is_wrong: Any = pc.not_equal(stored, pc.binary_join_element_wise(*named, ""))
    if len(parts) == 1:
        is_wrong = pc.and_(is_wrong, pc.not_equal(stored, parts[0]))
    # Hudi writes a name of its own for a null or an empty text.
    for part in parts:
        is_wrong = pc.and_(is_wrong, pc.not_equal(part, pa.scalar("")))
    wrong: list[str] = stored.filter(is_wrong, null_selection_behavior="drop").to_pylist()
    return wrong


def _has_one_form(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
