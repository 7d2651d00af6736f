"""Parses a table's Avro schema for the writer of fastavro, which takes a plain name for one of the enclosing namespace.

Hudi refers by such names to types without a namespace, such as those of its vectors.
"""

from typing import Any, Final

import fastavro

from eventide_adapters.format.avro.schema import full_name
from eventide_core.table.records.schema import AvroSchema

_NAMED: Final = ("record", "error", "enum", "fixed")


def writer_schema(schema: AvroSchema) -> Any:
    """The schema with other names of its types, which no encoded record contains."""
    return schema.derived(_writer_schema)


def _writer_schema(schema: AvroSchema) -> Any:
    return fastavro.parse_schema(_renamed(schema.parsed, "", {}))


def _renamed(schema: Any, namespace: str, names: dict[str, str]) -> Any:
    """`names` are the new names of the types that are defined so far."""
    if isinstance(schema, str):
        return names.get(full_name(schema, namespace), names.get(schema, schema))
    if isinstance(schema, list):
        return [_renamed(branch, namespace, names) for branch in schema]
    kind = schema["type"]
    if kind in _NAMED:
        name = full_name(schema["name"], schema.get("namespace", namespace))
        inner = name.rpartition(".")[0]
        new = names[name] = f"type{len(names)}"
        fields = [{**field, "type": _renamed(field["type"], inner, names)} for field in schema.get("fields", ())]
        kept = {key: value for key, value in schema.items() if key not in ("namespace", "aliases")}
        return {**kept, "name": new, **({"fields": fields} if fields else {})}
    inside = "items" if kind == "array" else "values" if kind == "map" else "type"
    return {**schema, inside: _renamed(schema[inside], namespace, names)}
