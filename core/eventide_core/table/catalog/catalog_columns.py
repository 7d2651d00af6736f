"""A table's Avro schema in a catalog: columns of Hive types, and Spark's schema as JSON.

Each Avro type becomes what Hudi's Hive sync makes of it:

    boolean int long float double string bytes    the same; Hive's bigint and binary, Spark's integer and long
    enum -> string, fixed -> binary, decimal and date as such
    timestamp-millis, -micros                     bigint for Hive, timestamp on request; Spark's timestamp
    local-timestamp-millis, -micros               the same for Hive; Spark's timestamp_ntz
    record, array, map                            struct<a:int>, array<int>, map<string,int>
    null and one other type                        the other type, nullable
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventide_core.errors import ResourceLimitError, UnsupportedTableError
from eventide_core.table.catalog.catalog_table import CatalogColumn
from eventide_core.table.schema.avro_schema import META_FIELDS, AvroSchema

_PRIMITIVES = {
    "boolean": ("boolean", "boolean"),
    "int": ("int", "integer"),
    "long": ("bigint", "long"),
    "float": ("float", "float"),
    "double": ("double", "double"),
    "string": ("string", "string"),
    "enum": ("string", "string"),
    "bytes": ("binary", "binary"),
    "fixed": ("binary", "binary"),
}
_TIMESTAMPS = {
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table, in order, with Hudi's meta fields first unless they are left out.

    `hive` has them with Hive's types; `spark_fields` are the fields of Spark's schema (JSON values), with the same names.
    Names are the table's own. A catalog keeps Hive's names in lower case.
    """

    hive: tuple[CatalogColumn, ...]
    spark_fields: tuple[Any, ...]

    @classmethod
    def of(cls, schema: AvroSchema, *, has_meta_fields: bool, supports_timestamp: bool) -> "TableColumns":
        """The columns of an Avro schema. Raises UnsupportedTableError for a column that no catalog can have."""
        meta = [{"name": name, "type": ["null", "string"]} for name in META_FIELDS] if has_meta_fields else []
        try:
            record = schema.parsed
            kinds = _Kinds(supports_timestamp, dict(_named(record, "")))
            fields = [*meta, *record["fields"]]
            hive = tuple(CatalogColumn(str(f["name"]), kinds.hive(f["type"], str(f["name"]))) for f in fields)
            return cls(hive, tuple(kinds.spark_field(f, str(f["name"])) for f in fields))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise UnsupportedTableError(
                f"the table's schema is not an Avro schema of records: {schema.text[:200]}"
            ) from None

    def spark_schema(self, partition_fields: Sequence[str]) -> str:
        """Spark's schema as JSON, partition columns last. A partition column that the table lacks is a string."""
        by_name = {field["name"]: field for field in self.spark_fields}
        text: dict[str, Any] = {"type": "string", "nullable": False, "metadata": {}}
        last = [by_name.get(name, {"name": name, **text}) for name in partition_fields]
        first = [field for field in self.spark_fields if field["name"] not in partition_fields]
        return json.dumps({"type": "struct", "fields": [*first, *last]}, separators=(",", ":"))


# n types that each name another type twice would expand to 2**n members.
_TYPE_LENGTH_MAX = 256 * 1024


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Turns Avro types into a catalog's types. `named`: the types that the schema defines once and then names."""

    supports_timestamp: bool
    named: Mapping[str, Any]

    def hive(self, kind: Any, path: str) -> str:
        plain, _ = self._resolved(kind, path)
        match plain["type"]:
            case "record":
                members = (f"{f['name']}:{self.hive(f['type'], path + '.' + f['name'])}" for f in _fields(plain))
                text = f"struct<{','.join(members)}>".lower()
                if len(text) > _TYPE_LENGTH_MAX:
                    raise ResourceLimitError(
                        f"the column {path} has a type of {len(text)} characters, which no catalog accepts: roll back "
                        "the write that added it to the table"
                    )
                return text
            case "array":
                return f"array<{self.hive(plain['items'], path)}>"
            case "map":
                return f"map<string,{self.hive(plain['values'], path)}>"
            case name:
                match plain.get("logicalType"):
                    case "decimal":
                        return _decimal(plain)
                    case "date":
                        return "date"
                    case logical if logical in _TIMESTAMPS and self.supports_timestamp:
                        return "timestamp"
                    case _:
                        return _primitive(name, path)[0]

    def spark_field(self, field: Any, path: str) -> dict[str, Any]:
        kind, nullable = self._spark(field["type"], path)
        return {"name": field["name"], "type": kind, "nullable": nullable, "metadata": {}}

    def _spark(self, kind: Any, path: str) -> tuple[Any, bool]:
        plain, nullable = self._resolved(kind, path)
        match plain["type"]:
            case "record":
                fields = [self.spark_field(f, f"{path}.{f['name']}") for f in _fields(plain)]
                return {"type": "struct", "fields": fields}, nullable
            case "array":
                element, contains_null = self._spark(plain["items"], path)
                return {"type": "array", "elementType": element, "containsNull": contains_null}, nullable
            case "map":
                value, contains_null = self._spark(plain["values"], path)
                map_type = {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": contains_null}
                return map_type, nullable
            case name:
                match plain.get("logicalType"):
                    case "decimal":
                        return _decimal(plain), nullable
                    case "date":
                        return "date", nullable
                    case logical if logical in _TIMESTAMPS:
                        return _TIMESTAMPS[logical], nullable
                    case _:
                        return _primitive(name, path)[1], nullable

    def _resolved(self, kind: Any, path: str) -> tuple[dict[str, Any], bool]:
        """The full type, and whether a value may be missing."""
        nullable = False
        if _is(list, kind):
            others = [one for one in kind if one != "null"]
            nullable = len(others) < len(kind)
            if len(others) != 1:
                raise UnsupportedTableError(
                    f"the column {path} is a union of {len(others)} types, which no catalog supports: sync it with "
                    "Hudi's own"
                )
            kind = others[0]
        if isinstance(kind, str):
            kind = self.named.get(kind, {"type": kind})
        if _is(dict, kind["type"]) or _is(list, kind["type"]):
            return self._resolved(kind["type"], path)
        return kind, nullable


def _named(kind: Any, namespace: str) -> Iterator[tuple[str, Any]]:
    """Every named type, by its name with and without its namespace."""
    if _is(list, kind):
        for one in kind:
            yield from _named(one, namespace)
    elif _is(dict, kind):
        inner = str(kind.get("namespace", namespace))
        if "name" in kind:
            yield from ((str(kind["name"]), kind), (f"{inner}.{kind['name']}", kind))
        for part in ("items", "values", "type"):
            yield from _named(kind.get(part), inner)
        for field in kind.get("fields", ()):
            yield from _named(field["type"], inner)


def _is(kind: type[Any], value: Any) -> bool:
    """isinstance that leaves the value's type Any."""
    return isinstance(value, kind)


def _fields(record: Any) -> Iterator[Any]:
    return iter(record["fields"])


def _decimal(kind: Any) -> str:
    return f"decimal({int(kind['precision'])},{int(kind.get('scale', 0))})"


def _primitive(name: str, path: str) -> tuple[str, str]:
    if name not in _PRIMITIVES:
        raise UnsupportedTableError(f"the column {path} is of the type {name}, which no catalog supports")
    return _PRIMITIVES[name]
