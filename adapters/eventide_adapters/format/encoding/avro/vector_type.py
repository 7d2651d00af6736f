"""Vectors, a column type of Hudi 1.2: fixed-size lists of numbers that are never null.

An Avro fixed with the logical type `vector`, whose bytes are the elements in little-endian order, contains one. Files and
merges have these bytes; queries and incoming records have lists. Arrow fields of both forms have Hudi's name of the type in
their metadata. As in Hudi, vectors are columns of the table, and never part of others.

    hudi_type                 elementType   a query's column
    VECTOR(n)                 FLOAT         fixed_size_list<float>[n]
    VECTOR(n, DOUBLE)         DOUBLE        fixed_size_list<double>[n]
    VECTOR(n, INT8)           INT8          fixed_size_list<int8>[n]
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField
from eventide_core.errors import InvalidRecordError

LOGICAL_TYPE: Final = "vector"
VECTORS_FOOTER: Final = "hoodie.vector.columns"
"""In base files, the columns that are vectors, as in `v:VECTOR(3),w:VECTOR(2, DOUBLE)`."""
_METADATA_KEY: Final = b"hudi_type"
_NAME: Final = re.compile(r"VECTOR\(\s*([0-9]{1,6})\s*(?:,\s*(FLOAT|DOUBLE|INT8)\s*)?\)")
_ELEMENTS: Final[Mapping[str, pa.DataType]] = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}


@dataclass(frozen=True, slots=True)
class VectorType:
    """`element` is FLOAT, DOUBLE, or INT8; `dimension` is the number of elements."""

    element: str
    dimension: int

    @classmethod
    def of_avro(cls, schema: Mapping[str, Any]) -> "VectorType | None":
        """The type of an Avro fixed; None if it isn't a vector whose elements fill its bytes."""
        element, dimension = str(schema.get("elementType")), schema.get("dimension")
        if schema.get("logicalType") != LOGICAL_TYPE or element not in _ELEMENTS or not isinstance(dimension, int):
            return None
        vector = cls(element, dimension)
        return vector if vector.size == schema.get("size") else None

    @classmethod
    def of_arrow(cls, kind: Any) -> "VectorType | None":
        """The type for a fixed-size list; None if no vector can hold its elements."""
        if not pa.types.is_fixed_size_list(kind) or kind.list_size == 0:
            return None
        return next((cls(name, kind.list_size) for name, own in _ELEMENTS.items() if own == kind.value_type), None)

    @classmethod
    def of_field(cls, field: ArrowField) -> "VectorType | None":
        """The type that a field's metadata name; None if they name none."""
        return cls.of_name((field.metadata or {}).get(_METADATA_KEY, b"").decode())

    @classmethod
    def of_name(cls, name: str) -> "VectorType | None":
        """The type that Hudi's name names, such as `VECTOR(3)` or `vector(2, double)`; None if it names none."""
        match = _NAME.fullmatch(name.upper())
        if match is None or not int(match[1]):
            return None
        return cls(match[2] or "FLOAT", int(match[1]))

    @property
    def name(self) -> str:
        """Hudi's name of the type."""
        return f"VECTOR({self.dimension})" if self.element == "FLOAT" else f"VECTOR({self.dimension}, {self.element})"

    @property
    def size(self) -> int:
        """Bytes of a value."""
        return self.dimension * _ELEMENTS[self.element].bit_width // 8

    @property
    def avro(self) -> dict[str, Any]:
        return {
            "type": "fixed",
            "name": f"vector_{self.element.lower()}_{self.dimension}",
            "namespace": "",
            "size": self.size,
            "logicalType": LOGICAL_TYPE,
            "dimension": self.dimension,
            "elementType": self.element,
            "storageBacking": "FIXED_BYTES",
        }

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of an Arrow field."""
        return {_METADATA_KEY: self.name.encode()}

    @property
    def list_type(self) -> Any:
        """The Arrow type of a query's column."""
        return pa.list_(pa.field("element", _ELEMENTS[self.element], nullable=False), self.dimension)

    def lists(self, stored: Any) -> Any:
        """The lists of an array of bytes. Shares the array's memory."""
        elements = pa.Array.from_buffers(
            _ELEMENTS[self.element],
            len(stored) * self.dimension,
            [None, stored.buffers()[1]],
            offset=stored.offset * self.dimension,
        )
        mask = stored.is_null() if stored.null_count else None
        return pa.FixedSizeListArray.from_arrays(elements, type=self.list_type, mask=mask)

    def stored(self, lists: Any, column: str) -> Any:
        """The bytes of a column of lists. Raises InvalidRecordError for a list of another length, or with a null in it."""
        kind: Any = pa.binary(self.size)
        return pa.chunked_array([self._stored(chunk, column) for chunk in lists.chunks], kind)

    def _stored(self, lists: Any, column: str) -> Any:
        try:
            fixed = lists.cast(pa.list_(_ELEMENTS[self.element], self.dimension))
        except (pa.ArrowException, ValueError) as error:
            raise InvalidRecordError(f"column {column!r} does not fit the table's {self.name}: {error}") from error
        # Elements below a null list have any value; `flatten` leaves them out.
        if fixed.flatten().null_count:
            raise InvalidRecordError(f"column {column!r} has a null inside a {self.name}; its elements are never null")
        elements = fixed.values.slice(fixed.offset * self.dimension, len(fixed) * self.dimension)
        stored = pa.Array.from_buffers(
            pa.binary(self.size), len(fixed), [None, elements.buffers()[1]], offset=elements.offset // self.dimension
        )
        return pc.if_else(fixed.is_valid(), stored, pa.scalar(None, stored.type)) if fixed.null_count else stored


def shown_schema(stored: pa.Schema) -> pa.Schema:
    """The schema with lists for the vectors."""
    kinds = [(field, VectorType.of_field(field)) for field in stored]
    return pa.schema([field if kind is None else field.with_type(kind.list_type) for field, kind in kinds])


def shown(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with lists for the vectors."""
    kinds = [VectorType.of_field(field) for field in batch.schema]
    if not any(kinds):
        return batch
    columns = [c if kind is None else kind.lists(c) for c, kind in zip(batch.columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=shown_schema(batch.schema))


def vectors_footer(stored: pa.Schema) -> dict[str, str]:
    """The pair of a base file's footer that names the vectors; none if there are none."""
    names = [f"{field.name}:{kind.name}" for field in stored if (kind := VectorType.of_field(field)) is not None]
    return {VECTORS_FOOTER: ",".join(names)} if names else {}
