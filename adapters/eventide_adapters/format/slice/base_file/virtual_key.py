"""The record keys of tables without meta fields, computed from columns as Hudi's key generators do.

    one key field     its value as a string
    several           name:value,name:value,...    a null is `__null__`, an empty string `__empty__`

Delete blocks of such tables contain these strings. Strings, whole numbers, and booleans have the same form in every
engine. The form of other types, such as dates and decimals, depends on the writer, so they are refused.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.schema.avro_schema import RECORD_KEY


def with_record_keys(records: pa.RecordBatch, key_fields: Sequence[str]) -> pa.RecordBatch:
    """The records with their keys, computed from the key fields, in the meta column.

    Returns the records unchanged if there are no key fields, or if they lack the meta column. Raises
    UnsupportedTableError.
    """
    place = records.schema.get_field_index(RECORD_KEY)
    if not key_fields or place < 0:
        return records
    return records.set_column(place, records.schema.field(place), _record_keys(records, key_fields))


def _record_keys(records: pa.RecordBatch, key_fields: Sequence[str]) -> ArrowArray:
    if len(key_fields) == 1:
        text: ArrowArray = _text(records, key_fields[0])
        return text
    parts: list[Any] = []
    for name in key_fields:
        value = _text(records, name)
        is_empty: Any = pc.equal(value, pa.scalar(""))
        value = pc.if_else(is_empty, "__empty__", value).fill_null("__null__")
        parts.append(pc.binary_join_element_wise(pa.scalar(name), value, ":"))
    joined: ArrowArray = pc.binary_join_element_wise(*parts, ",")
    return joined


def _text(records: pa.RecordBatch, name: str) -> Any:
    column: Any = records.column(name)
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        raise UnsupportedTableError(
            f"record key field {name} is {column.type}: without meta fields, only keys of strings, whole numbers and "
            "booleans are supported; rewrite the table with hoodie.populate.meta.fields=true"
        )
    return column.cast(pa.string())
