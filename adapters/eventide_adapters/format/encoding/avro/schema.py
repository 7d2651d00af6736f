"""Resolves the types of a table's Avro schema, and gives the Arrow schema of its records.

The types are those that Avro's Parquet writer stores, so a base file keeps its column types:

    null | boolean | int | long | float | double | string | bytes     the Arrow type of that name
    fixed(n)                    fixed_size_binary(n)         enum, uuid on string     string
    decimal on bytes and fixed  decimal128(p, s)             date                     date32
    time-millis, -micros        time32(ms), time64(us)       timestamp-*              timestamp(ms | us, UTC)
    local-timestamp-*           timestamp(ms | us)           array, map, record       list, map, struct
    union of null and one type  that type, nullable          int|long, float|double   int64, float64
    any other union             struct<member0, member1, ...>; the member that is set identifies the branch
    vector on fixed(n)          fixed_size_binary(n), with the vector's type in the field's metadata (vector_type.py)

An unknown logical type is ignored, as Avro specifies: the underlying type applies. A schema is refused if its types are
nested too deeply or define too many values. Types that refer to others twice would define 2**n values with n types.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.encoding.avro.event_time_properties import without_event_times
from eventide_adapters.format.encoding.avro.vector_type import VectorType, shown_schema
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField, ArrowType
from eventide_core.errors import ResourceLimitError, UnsupportedTableError
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.schema.variant import LOGICAL_TYPE as VARIANT

_VARIANT_METADATA: Final = {b"hudi_type": b"VARIANT"}
_VARIANT_FIELDS: Final = [("metadata", "bytes"), ("value", "bytes")]

_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_WIDENED_UNIONS: Final[Mapping[frozenset[str], pa.DataType]] = {
    frozenset({"int", "long"}): pa.int64(),
    frozenset({"float", "double"}): pa.float64(),
}
_DECIMAL_PRECISION_MAX = 38  # the limit of decimal128 and Spark
_DECIMAL_BYTES_MAX = 16
_DEPTH_MAX = 64
_VALUES_MAX = 1 << 16  # values of one record, including nested ones; each is a Parquet column


@dataclass(frozen=True, slots=True)
class AvroType:
    """A type with its names resolved.

    `kind` is Avro's name of the type; `arrow` is the type that its values have in Arrow and in a base file. `fields` are a
    record's fields, the item of an array or map, or the branches of a union except null. `size` is the size of a fixed;
    `symbols` are an enum's. `depth` is the nesting depth of types, `values` their total number. `vector` is set for a
    fixed that contains a vector, `is_variant` for a record that is one.
    """

    kind: str
    arrow: ArrowType
    size: int = 0
    symbols: tuple[str, ...] = ()
    fields: "tuple[AvroField, ...]" = ()
    depth: int = 1
    values: int = 1
    vector: VectorType | None = None
    is_variant: bool = False

    @classmethod
    def of_fields(cls, kind: str, fields: "tuple[AvroField, ...]", arrow: Callable[[], ArrowType]) -> "AvroType":
        """A type that consists of others. Raises ResourceLimitError.

        Computes the Arrow type after it checks the limits.
        """
        depth = 1 + max((field.type.depth for field in fields), default=0)
        values = 1 + sum(field.type.values for field in fields)
        if depth > _DEPTH_MAX or values > _VALUES_MAX:
            raise ResourceLimitError(
                f"an Avro schema with types {depth} deep and {values} values in one ({kind} of "
                f"{', '.join(field.name[:40] for field in fields[:3])}); eventide reads {_DEPTH_MAX} and "
                f"{_VALUES_MAX}: nest less, or roll back the write that has it"
            )
        return cls(kind, arrow(), fields=fields, depth=depth, values=values)

    @property
    def item(self) -> "AvroField":
        """The item of an array. The item of a map is an entry, which is a record of key and value."""
        (item,) = self.fields
        if self.kind == "array":
            return item
        key = AvroField("key", AvroType("string", pa.string()))
        return AvroField("entry", AvroType("record", pa.struct([key.arrow, item.arrow]), fields=(key, item)))

    @property
    def is_tagged_union(self) -> bool:
        """Whether a value has to state its branch."""
        return self.kind == "union" and len(self.fields) > 1 and pa.types.is_struct(self.arrow)


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record. The item of an array or map and a branch of a union are fields, too.

    `type` is the type of its values other than null. `null_branch` is the position of null in its union of two or more
    types; None if it has no such union. `default` is the value for a record without the field, as in JSON; None if it is
    null or absent. `arrow` is computed from the others: the field in Arrow, nullable if the union has null, with the
    metadata that marks a vector or a variant.
    """

    name: str
    type: AvroType
    null_branch: int | None = None
    default: Any = None
    arrow: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Cached, because every batch of every file uses it.
        metadata = _VARIANT_METADATA if self.type.is_variant else None
        if self.type.vector is not None:
            metadata = self.type.vector.metadata
        object.__setattr__(self, "arrow", pa.field(self.name, self.type.arrow, self.is_nullable, metadata))

    @property
    def is_nullable(self) -> bool:
        return self.null_branch is not None or pa.types.is_null(self.type.arrow)


def is_variant(column: ArrowField) -> bool:
    """Whether a column of a query has a variant in each row, which is not shredded (core's table/records/variant)."""
    return column.metadata == _VARIANT_METADATA


def table_fields(schema: AvroSchema, names: Collection[str] | None = None) -> tuple[AvroField, ...]:
    """The fields of a table's records in order, meta fields first. If `names` is given, only these."""
    return tuple(f for f in record_fields(schema.with_meta_fields()) if names is None or f.name in names)


def query_schema(shape: RecordShape) -> pa.Schema:
    """The Arrow schema of a query's rows. Hudi's meta fields come first if the table has them; vectors are lists."""
    return shown_schema(arrow_schema(shape.schema if shape.key_fields else shape.schema.with_meta_fields()))


def arrow_schema(schema: AvroSchema) -> pa.Schema:
    """The Arrow schema of the records of that Avro schema. Raises UnsupportedTableError."""
    return schema.derived(_arrow_schema)


def record_fields(schema: AvroSchema) -> tuple[AvroField, ...]:
    """The fields of a record schema. Raises UnsupportedTableError for an unknown type."""
    return without_event_times(schema).derived(_record_fields)


def _arrow_schema(schema: AvroSchema) -> pa.Schema:
    return pa.schema([field.arrow for field in record_fields(schema)])


def _record_fields(schema: AvroSchema) -> tuple[AvroField, ...]:
    try:
        return _Resolver().resolve(schema.record, "").fields
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnsupportedTableError(f"an Avro schema that cannot be read ({error!r}): {schema.text[:200]}") from error


@dataclass(slots=True)
class _Resolver:
    """Resolves the types of one schema. A named type is known from its definition on; None while it is being defined."""

    names: dict[str, AvroType | None] = field(default_factory=dict)

    def resolve(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return AvroType(schema, _PRIMITIVES[schema])
            return self._named(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace)
        kind = schema["type"]
        match kind:
            case "array" | "map":
                return self._collection(kind, schema, namespace)
            case "record" | "error" | "enum" | "fixed":
                return self._definition(kind, schema, namespace)
            case str() if kind in _PRIMITIVES:
                return AvroType(kind, _with_logical_type(kind, schema, _PRIMITIVES[kind]))
            case _:
                return self.resolve(kind, namespace)

    def field(self, name: str, schema: Any, namespace: str, *, default: Any = None) -> AvroField:
        """A field. Null is removed from its type."""
        if isinstance(schema, list) and "null" in schema:
            others = [branch for branch in schema if branch != "null"]
            if others:
                others_type = self.resolve(others if len(others) > 1 else others[0], namespace)
                return AvroField(name, others_type, schema.index("null"), default)
        return AvroField(name, self.resolve(schema, namespace), None, default)

    def _named(self, name: str, namespace: str) -> AvroType:
        known = self.names.get(full_name(name, namespace), self.names.get(name, False))
        if known is None:
            raise UnsupportedTableError(f"Avro type {name} contains itself, which no column type supports")
        if isinstance(known, bool):
            raise UnsupportedTableError(f"unknown Avro type {name!r}")
        return known

    def _union(self, branches: list[Any], namespace: str) -> AvroType:
        members = tuple(AvroField(f"member{i}", self.resolve(b, namespace)) for i, b in enumerate(branches))
        if len(members) == 1:  # still a union: values are preceded by the number of their branch
            return AvroType.of_fields("union", members, lambda: members[0].type.arrow)
        widened = _WIDENED_UNIONS.get(frozenset(member.type.kind for member in members))
        if widened is not None and all(str(m.type.arrow) == str(_PRIMITIVES[m.type.kind]) for m in members):
            return AvroType.of_fields("union", members, lambda: widened)
        return AvroType.of_fields(
            "union", members, lambda: pa.struct([pa.field(m.name, m.type.arrow) for m in members])
        )

    def _collection(self, kind: str, schema: Mapping[str, Any], namespace: str) -> AvroType:
        if kind == "array":
            item = self.field("element", schema["items"], namespace)
        else:
            item = self.field("value", schema["values"], namespace)
        if _takes_no_bytes(item):
            # The content can't be used to check the number of such items.
            raise UnsupportedTableError(f"an Avro {kind} of nulls")
        is_array = kind == "array"
        return AvroType.of_fields(
            kind, (item,), lambda: pa.list_(item.arrow) if is_array else pa.map_(pa.string(), item.arrow)
        )

    def _definition(self, kind: str, schema: Mapping[str, Any], namespace: str) -> AvroType:
        name = full_name(schema["name"], schema.get("namespace", namespace))
        inner = name.rpartition(".")[0]
        self.names[name] = None
        if kind == "enum":
            defined = AvroType("enum", pa.string(), symbols=tuple(schema["symbols"]))
        elif kind == "fixed":
            size = schema["size"]
            if not isinstance(size, int) or size <= 0:
                raise UnsupportedTableError(f"Avro type {name} of {size} bytes")
            if schema.get("logicalType") == "decimal" and size > _DECIMAL_BYTES_MAX:
                raise UnsupportedTableError(
                    f"Avro decimal {name} of {size} bytes; at most {_DECIMAL_BYTES_MAX} are supported"
                )
            arrow = _with_logical_type(kind, schema, pa.binary(size))
            defined = AvroType("fixed", arrow, size, vector=VectorType.of_avro(schema))
        else:
            fields = tuple(self.field(f["name"], f["type"], inner, default=f.get("default")) for f in schema["fields"])
            if not fields:
                raise UnsupportedTableError(f"Avro record {name} has no fields, which no Parquet column supports")
            _refuse_doubles(name, (f.name for f in fields))
            defined = AvroType.of_fields("record", fields, lambda: pa.struct([f.arrow for f in fields]))
            parts = [(f.name, f.type.kind) for f in fields]
            defined = replace(defined, is_variant=schema.get("logicalType") == VARIANT and parts == _VARIANT_FIELDS)
        self.names[name] = defined
        return defined


def _with_logical_type(kind: str, schema: Mapping[str, Any], plain: pa.DataType) -> pa.DataType:
    logical = schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = schema["precision"], schema.get("scale", 0)
        if not 0 <= scale <= precision <= _DECIMAL_PRECISION_MAX or precision == 0:
            raise UnsupportedTableError(
                f"an Avro decimal({precision}, {scale}); at most {_DECIMAL_PRECISION_MAX} digits are supported"
            )
        return pa.decimal128(precision, scale)
    return _LOGICAL.get((kind, logical), plain) if isinstance(logical, str) else plain


def _takes_no_bytes(field: AvroField) -> bool:
    if field.null_branch is not None:
        return False
    kind = field.type.kind
    return kind == "null" or (kind == "record" and all(_takes_no_bytes(inner) for inner in field.type.fields))


def full_name(name: str, namespace: str) -> str:
    """The name of a type, in the namespace that encloses it."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _refuse_doubles(record: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UnsupportedTableError(f"Avro record {record} has two fields {name!r}")
        seen.add(name)
