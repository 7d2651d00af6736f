"""Fits the columns of incoming records to a table's schema, and evolves the schema.

A column that the table has      is cast to the table's type if all of its values fit. With `SchemaRules.adds_columns`, if
                                 its type is wider, the table's type is widened instead: int to long, float to double,
                                 int to double.
A column that it does not have   is refused; with `SchemaRules.adds_columns`, it is added at the end and may be null, as in
                                 Hudi.
A column that is missing         is refused; with `SchemaRules.nulls_missing`, it is null in these records, if the table's
                                 column may be null.
`_hoodie_is_deleted`, Hudi's own, may come and be left out without asking: null means not deleted.
A name that differs from another only in case  is always refused: Spark reads such columns as one.

The fields of nested records follow the same rules, except that none can be added: Arrow's cast would drop them silently.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.from_arrow import avro_field_of, avro_schema_of
from eventide_adapters.format.encoding.avro.schema import AvroType, arrow_schema, record_fields
from eventide_adapters.format.encoding.avro.vector_type import VectorType
from eventide_adapters.format.encoding.columns.exact_cast import cast_whole, is_list, refuse_unstated
from eventide_core.cure import Cure
from eventide_core.errors import InvalidColumnNameError, InvalidRecordError
from eventide_core.table.schema.avro_names import refuse_invalid_names
from eventide_core.table.schema.avro_schema import IS_DELETED, META_FIELDS, AvroSchema
from eventide_core.table.schema.avro_types import define_vectors_once, vector_definitions
from eventide_core.table.settings.write_shape import SchemaRules

_WIDER: Final = {
    ("int", pa.int64()): "long",
    ("int", pa.float32()): "double",
    ("int", pa.float64()): "double",
    ("float", pa.float64()): "double",
}


def evolved_schema(schema: AvroSchema | None, incoming: pa.Schema, table_name: str, rules: SchemaRules) -> AvroSchema:
    """The table's Avro schema after records with these columns; the same one if nothing changes.

    `schema` is None if the table has none yet. Raises InvalidRecordError for a column that `rules` do not allow to be new
    or missing, and for a missing column that is never null; InvalidColumnNameError for a new column with a name that Avro
    does not allow, or that differs from another only in case.
    """
    refuse_names_alike(incoming.names)
    if schema is None:
        own = [column.with_nullable(True) for column in incoming if column.name not in META_FIELDS]
        refuse_invalid_names(column.name for column in own)
        return avro_schema_of(table_name, pa.schema(own))
    parsed, table = schema.parsed, arrow_schema(schema)
    fields = [dict[str, Any](field) for field in parsed["fields"]]
    _refuse_new_columns(incoming.names, table.names, may_add=rules.adds_columns)
    changed = False
    for field in fields:
        place = incoming.get_field_index(field["name"])
        if place < 0:
            if not table.field(field["name"]).nullable:
                raise InvalidRecordError(
                    f"records without the column {field['name']!r}, which is never null in the table; they have "
                    f"{', '.join(incoming.names)}"
                )
            if not rules.nulls_missing and field["name"] != IS_DELETED:
                kept = f"keep its values by an upsert with {Cure.argument('columns', 'partial')}, "
                raise InvalidRecordError(_missing(field["name"], incoming.names, kept))
            continue
        refuse_unstated(incoming.field(place).type, table.field(field["name"]).type, f"column {field['name']!r}")
        for place_of, names, own_names in _nested(
            field["name"], incoming.field(place).type, table.field(field["name"]).type
        ):
            _refuse_other_fields(place_of, names, own_names, rules)
        wider = _widened(field["type"], incoming.field(place).type) if rules.adds_columns else None
        if wider is not None:
            field["type"] = wider
            changed = True
    record = f"{parsed['namespace']}.{parsed['name']}" if parsed.get("namespace") else str(parsed["name"])
    added = [column for column in incoming if column.name not in table.names and column.name not in META_FIELDS]
    refuse_invalid_names(column.name for column in added)
    fields += [avro_field_of(column.with_nullable(True), record) for column in added]
    define_vectors_once(fields, vector_definitions(field["type"] for field in fields))
    changed = changed or bool(added)
    return AvroSchema.of_json({**parsed, "fields": fields}) if changed else schema


def conform(records: pa.Table, schema: pa.Schema) -> pa.Table:
    """The records with the columns and types of `schema`. Missing columns are null.

    Raises InvalidRecordError for a value that does not fit, with its column, and for a null that is not allowed, with its
    row and column.
    """
    columns: list[Any] = []
    places = {name: place for place, name in enumerate(records.column_names)}
    for field in schema:
        if field.name not in places:
            columns.append(pa.nulls(len(records), field.type))
            continue
        column: Any = records.column(places[field.name])
        vector = VectorType.of_field(field)
        if vector is not None and is_list(column.type):
            column = vector.stored(column, field.name)
        elif column.type != field.type:
            column = cast_whole(column, field.type, f"column {field.name!r}")
        if column.null_count and not field.nullable:
            row = column.is_null().index(True).as_py()
            raise InvalidRecordError(f"row {row}: column {field.name!r} is null, but never in the table")
        columns.append(column)
    return pa.table(columns, schema=schema)


def refuse_other_symbols(rows: pa.Table, schema: AvroSchema) -> None:
    """Raises InvalidRecordError for a text that is not a symbol of its enum: no reader of Avro could read it."""
    for field in record_fields(schema):
        if _has_enum(field.type):
            _refuse_other_symbols(rows.column(field.name), field.type, f"column {field.name!r}")


def _has_enum(kind: AvroType) -> bool:
    return kind.kind == "enum" or any(_has_enum(field.type) for field in kind.fields)


def _refuse_other_symbols(column: Any, kind: AvroType, place: str) -> None:
    match kind.kind:
        case "enum":
            unknown = column.filter(pc.invert(pc.is_in(column, pa.array(kind.symbols, pa.string())))).drop_null()
            if len(unknown):
                row = f"row {pc.index(column, unknown[0])}: " if place.startswith("column") else ""
                raise InvalidRecordError(
                    f"{row}{place} has {unknown[0].as_py()!r}, which is not one of the symbols of its enum: "
                    f"{', '.join(kind.symbols)}; correct the value"
                )
        case "record" if not kind.is_variant:
            for field in kind.fields:
                _refuse_other_symbols(pc.struct_field(column, field.name), field.type, f"{place}, field {field.name!r}")
        case "array":
            _refuse_other_symbols(pc.list_flatten(column), kind.fields[0].type, f"an element of {place}")
        case "map":
            _refuse_other_symbols(
                pa.chunked_array([maps.items for maps in column.chunks], column.type.item_type),
                kind.fields[0].type,
                f"a value of {place}",
            )


def refuse_names_alike(names: Iterable[str]) -> None:
    """Raises InvalidColumnNameError for a name that comes twice, and for two that differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        if seen.get(name.lower()) == name:
            raise InvalidColumnNameError(f"there are two columns {name!r}; rename or drop one of them")
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise InvalidColumnNameError(
                f"columns {other!r} and {name!r} differ only in case, and Spark reads them as one; rename one of them"
            )


def _refuse_new_columns(incoming: Sequence[str], known: Sequence[str], *, may_add: bool) -> None:
    """Raises InvalidColumnNameError for a new name that is a table's but for its case, InvalidRecordError for any other."""
    by_lower_case = {name.lower(): name for name in known}
    for name in incoming:
        if name in known or name in META_FIELDS:
            continue
        alike = by_lower_case.get(name.lower())
        if alike is not None:
            raise InvalidColumnNameError(
                f"column {name!r} differs from the table's column {alike!r} only in case; rename it to {alike!r}"
            )
        if not may_add and name != IS_DELETED:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; its columns are {', '.join(known)}."
            raise InvalidRecordError(
                f"the table has no column {name!r}{hint} To add the column, pass "
                f"{Cure.argument('schema_mode', 'merge')}"
            )


def _missing(name: str, incoming: Sequence[str], kept: str = "") -> str:
    near = get_close_matches(name, [other for other in incoming if other != name], n=1)
    hint = f" (their column {near[0]!r} has a similar name)" if near else ""
    return (
        f"records without the column {name!r}{hint}, whose values would be lost, as a write replaces whole rows; add the "
        f"column to the records, {kept}or let it become null: hoodie.write.set.null.for.missing.columns=true"
    )


def _nested(path: str, incoming: Any, table: Any) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The field names of each record that both types contain: its place, the names of the incoming type, and the table's."""
    if is_list(incoming) and is_list(table):
        yield from _nested(f"{path}.element", incoming.value_type, table.value_type)
    elif pa.types.is_struct(incoming) and pa.types.is_struct(table):
        names = tuple(incoming.field(number).name for number in range(incoming.num_fields))
        own = tuple(table.field(number).name for number in range(table.num_fields))
        yield path, names, own
        for name in names:
            if name in own:
                yield from _nested(f"{path}.{name}", incoming.field(name).type, table.field(name).type)
    elif pa.types.is_map(incoming) and pa.types.is_map(table):
        yield from _nested(f"{path}.value", incoming.item_type, table.item_type)


def _refuse_other_fields(path: str, incoming: Sequence[str], own: Sequence[str], rules: SchemaRules) -> None:
    """Raises InvalidRecordError for a nested field that only one side has; a missing one may be allowed."""
    added = [name for name in incoming if name not in own]
    if added:
        raise InvalidRecordError(
            f"column {path!r} has the field {added[0]!r}, which the table's column lacks and a write cannot add; its "
            f"fields are {', '.join(own)}"
        )
    missing = [name for name in own if name not in incoming]
    if missing and not rules.nulls_missing:
        raise InvalidRecordError(_missing(f"{path}.{missing[0]}", incoming))


def _widened(avro: Any, incoming: Any) -> Any | None:
    """The wider type for the values of both types; None if the table's type stays."""
    if isinstance(avro, list):
        branches = [_WIDER.get((branch, incoming), branch) if isinstance(branch, str) else branch for branch in avro]
        return branches if branches != avro else None
    return _WIDER.get((avro, incoming)) if isinstance(avro, str) else None
