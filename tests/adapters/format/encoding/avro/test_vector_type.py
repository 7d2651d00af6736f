"""Vectors: their names, their bytes, and the columns that do not fit."""

import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.encoding.avro.from_arrow import avro_schema_of
from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.avro.vector_type import VectorType, shown, shown_schema, vectors_footer
from eventide_adapters.format.write.incoming_schema import conform, evolved_schema
from eventide_core.errors import InvalidRecordError
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.write_shape import SchemaRules

FIELDS: "list[pa.Field[Any]]" = [
    pa.field("v", pa.list_(pa.float32(), 2)),
    pa.field("same", pa.list_(pa.float32(), 2), nullable=False),
    pa.field("w", pa.list_(pa.float64(), 2)),
    pa.field("b", pa.list_(pa.int8(), 3)),
]
COLUMNS = pa.schema(FIELDS)
SCHEMA = avro_schema_of("t", COLUMNS)
NAMES = ["VECTOR(2)", "VECTOR(2)", "VECTOR(2, DOUBLE)", "VECTOR(3, INT8)"]


def test_a_table_of_fixed_size_lists_has_vectors() -> None:
    stored = arrow_schema(SCHEMA)
    vectors = [VectorType.of_field(field) for field in stored]
    assert [one and one.name for one in vectors] == NAMES
    assert [field.type for field in stored] == [pa.binary(8), pa.binary(8), pa.binary(16), pa.binary(3)]
    assert vectors_footer(stored) == {
        "hoodie.vector.columns": ",".join(map(":".join, zip(stored.names, NAMES, strict=True)))
    }
    assert [field.type.value_type for field in shown_schema(stored)] == [field.type.value_type for field in COLUMNS]
    # Avro has each name once; the second column refers to it, as Hudi's own schemas do.
    assert SCHEMA.parsed["fields"][1]["type"] == "vector_float_2"


def test_the_bytes_are_little_endian_numbers() -> None:
    values: list[Any] = [[[1.5, -2.0]], [[0.0, 1.0]], [[1.0, 2.0]], [[-1, 0, 127]]]
    rows = pa.table(values, names=COLUMNS.names).cast(COLUMNS)
    stored = conform(rows, arrow_schema(SCHEMA))
    assert stored.to_pylist() == [
        {
            "v": struct.pack("<2f", 1.5, -2.0),
            "same": struct.pack("<2f", 0.0, 1.0),
            "w": struct.pack("<2d", 1.0, 2.0),
            "b": b"\xff\x00\x7f",
        }
    ]
    assert conform(stored, arrow_schema(SCHEMA)) == stored


numbers = st.floats(width=32, allow_nan=False)
vectors = st.lists(st.one_of(st.none(), st.tuples(numbers, numbers).map(list)), max_size=9)


@given(values=vectors, begin=st.integers(0, 4), split=st.integers(0, 9), is_list=st.booleans())
def test_lists_come_back(values: list[Any], begin: int, split: int, is_list: bool) -> None:
    kind = VectorType("FLOAT", 2)
    given_type: Any = pa.list_(pa.float64()) if is_list else kind.list_type
    array = pa.array(values, given_type).slice(begin)
    stored = kind.stored(pa.chunked_array([array.slice(0, split), array.slice(split)]), "v")
    batch = pa.record_batch([stored.combine_chunks()], schema=arrow_schema(SCHEMA).empty_table().select(["v"]).schema)
    assert shown(batch).column(0).to_pylist() == values[begin:]
    assert shown(batch.slice(1)).column(0).to_pylist() == values[begin:][1:]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ([1.0], "column 'v' does not fit the table's VECTOR\\(2\\)"),
        ([1.0, None], "column 'v' has a null inside a VECTOR\\(2\\)"),
        (["x", "y"], "column 'v' does not fit"),
    ],
)
def test_a_list_that_is_no_such_vector_is_refused(value: list[Any], what: str) -> None:
    with pytest.raises(InvalidRecordError, match=what):
        VectorType("FLOAT", 2).stored(pa.chunked_array([pa.array([value])]), "v")


def test_a_vector_that_does_not_fill_its_bytes_stays_bytes() -> None:
    avro = {**VectorType("FLOAT", 2).avro, "size": 9}
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "v", "type": avro}]})
    assert shown_schema(arrow_schema(AvroSchema.of(schema))).field("v").type == pa.binary(9)


def test_a_fixed_size_list_within_a_column_is_a_list() -> None:
    schema = avro_schema_of("t", pa.schema([pa.field("s", pa.struct([pa.field("v", pa.list_(pa.float32(), 2))]))]))
    assert arrow_schema(schema).field("s").type == pa.struct(
        [pa.field("v", pa.list_(pa.field("element", pa.float32())))]
    )


def test_a_write_can_add_a_vector_of_a_known_type() -> None:
    incoming = pa.schema([*COLUMNS, pa.field("new", pa.list_(pa.float32(), 2))])
    evolved = evolved_schema(SCHEMA, incoming, "t", SchemaRules(adds_columns=True))
    assert VectorType.of_field(arrow_schema(evolved).field("new")) == VectorType("FLOAT", 2)
