"""Alters a table's schema as every reader follows it: without schema evolution on read, by names alone.

add      a column that may be null, at a place; older rows have null
widen    int to long or double, long or float to double
move     to another place; readers resolve columns by names
drop     a column that may be null; its values stay in older files, and no reader shows them
rename   only in a table whose schema evolves on read (hoodie.schema.on.read.enable): any other Hudi, and hudi-rs, would
         read a new column

What a reader would not follow is refused, by measurement (docs/guide/schema_changes.md), such as every change within a
nested column.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from typing import Any, Final

from eventide_core.errors import InvalidColumnNameError, SchemaChangeError, UnsupportedTableError
from eventide_core.table.schema.avro_names import refuse_invalid_names
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.schema.avro_types import branches, define_vectors_once, is_union, vector_definitions

FIRST: Final = "first"
AFTER: Final = "after "

_OF_HUDI: Final = "_hoodie_"
_WIDER: Final = {("int", "long"), ("int", "double"), ("long", "double"), ("float", "double")}
_PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class SchemaAlteration:
    """What to change, made in this order: drop, widen, rename, add, move. `rename` has the new names by the old ones.

    `drop` has the names of columns. `add` and `widen` have Avro types without null by column. `move` has the places of
    columns, added ones too: `first`, or `after COLUMN`.
    """

    add: Mapping[str, Any] = field(default_factory=dict[str, Any])
    widen: Mapping[str, Any] = field(default_factory=dict[str, Any])
    move: Mapping[str, str] = field(default_factory=dict[str, str])
    drop: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict[str, str])


def altered_schema(schema: AvroSchema, alteration: SchemaAlteration, fixed_columns: Mapping[str, str]) -> AvroSchema:
    """The Avro schema after the alteration; the same one if it changes nothing.

    `fixed_columns` states what a column is for, such as the record key: such a column keeps its type and stays.

    Raises SchemaChangeError for a change that the table or its readers don't allow, InvalidColumnNameError for a new name
    that Avro does not allow, or that differs from another only in case.
    """
    fields = [dict[str, Any](column) for column in schema.parsed["fields"]]
    root: dict[str, Any] = {**schema.parsed, "fields": fields}
    vectors = vector_definitions([*alteration.add.values(), *(column["type"] for column in fields)])
    for name in dict.fromkeys(alteration.drop):
        place = _place_of(fields, name)
        _refuse_fixed(name, fixed_columns, "dropped")
        if "null" not in branches(fields[place]["type"]):
            raise SchemaChangeError(
                f"column {name!r} cannot be dropped: it is never null in the table, and writers that do not know of the "
                "change, and older readers, need its values"
            )
        del fields[place]
    for name, kind in alteration.widen.items():
        place = _place_of(fields, name)
        _refuse_fixed(name, fixed_columns, "widened")
        fields[place] = {**fields[place], "type": _widened(name, fields[place]["type"], kind)}
    for name, new in alteration.rename.items():
        place = _place_of(fields, name)
        _refuse_fixed(name, fixed_columns, "renamed")
        _refuse_new_name(new, fields)
        if any(not isinstance(kind, str) or kind not in _PRIMITIVES for kind in _types(fields[place]["type"])):
            raise SchemaChangeError(
                f"column {name!r} cannot be renamed: its type has a name of its own in Avro, as structs and decimals of "
                "fixed size have, which Hudi makes from the column's name, and Hudi 0.15 refuses the next write; add a new "
                "column, update it, then drop the old one"
            )
        fields[place] = {**fields[place], "name": new}
    for name, kind in alteration.add.items():
        if name in alteration.drop:
            raise SchemaChangeError(
                f"column {name!r} is dropped and added at once, and its values in older files would come back; add a column "
                "of another name"
            )
        _refuse_new_name(name, fields)
        fields.append({"name": name, "type": ["null", kind], "default": None})
    for name, destination in alteration.move.items():
        _move(fields, name, destination)
    if not fields:
        raise SchemaChangeError("a table needs at least one column: keep one of them")
    define_vectors_once(fields, vectors)
    _refuse_lost_definitions(root)
    return schema if root == schema.parsed else AvroSchema.of_json(root)


def rename_refused(old: str, new: str) -> SchemaChangeError:
    """Why a column of a table whose schema doesn't evolve on read is not renamed, and what to do instead."""
    return SchemaChangeError(
        f"column {old!r} cannot be renamed to {new!r}: older files keep the name {old!r}, and Hudi without "
        "hoodie.schema.on.read.enable, and hudi-rs, would show null for their values; add the column "
        f"{new!r}, update it with the values of {old!r}, then drop {old!r}; or if all readers are Hudi with "
        "hoodie.schema.on.read.enable=true, state that option"
    )


def _place_of(fields: Sequence[Mapping[str, Any]], name: str) -> int:
    names = [str(known["name"]) for known in fields]
    if name in names:
        return names.index(name)
    top, dot, _ = name.partition(".")
    if dot and top in names:
        raise SchemaChangeError(
            f"{name!r} is a field of the column {top!r}, and not every reader follows a change within a nested column: "
            "hudi-rs reads no older log file whose record differs, and Spark 3.5 no older base file with a narrower field; "
            "add a new column, update it, then drop the old one"
        )
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"its columns are {', '.join(names)}."
    raise SchemaChangeError(f"the table has no column {name!r}; {hint}")


def _refuse_fixed(name: str, fixed_columns: Mapping[str, str], change: str) -> None:
    if name in fixed_columns:
        raise SchemaChangeError(
            f"column {name!r} cannot be {change}: it is {fixed_columns[name]} of the table, by which its records are found "
            "and merged; create a new table instead"
        )


def _refuse_new_name(name: str, fields: Sequence[Mapping[str, Any]]) -> None:
    if "." in name:
        _place_of(fields, name)  # raises an error with the reason
    refuse_invalid_names([name], "Choose another name, such as the one in parentheses")
    if name.startswith(_OF_HUDI):
        raise SchemaChangeError(
            f"column {name!r}: names that begin with {_OF_HUDI} are Hudi's own: choose another name"
        )
    for other in (str(known["name"]) for known in fields):
        if other == name:
            raise SchemaChangeError(f"the table already has a column {name!r}: choose another name")
        if other.lower() == name.lower():
            raise InvalidColumnNameError(
                f"column {name!r} differs from the table's column {other!r} only in case, and Spark reads them as one; "
                "choose another name"
            )


def _widened(name: str, kind: Any, wider: Any) -> Any:
    kinds = branches(kind)
    known = [branch for branch in kinds if branch != "null"]
    if known == [wider]:
        return kind
    allowed = sorted({w for k, w in _WIDER if known == [k]})
    if wider not in allowed:
        can = f"it can become {' or '.join(allowed)}" if allowed else "columns of this type keep it"
        raise SchemaChangeError(
            f"column {name!r} of type {_text(known)} cannot become {_text([wider])}: every reader follows int to long or "
            f"double, long or float to double, and no other change; {can}"
        )
    return [wider if branch == known[0] else branch for branch in kinds] if is_union(kind) else wider


def _text(kinds: Sequence[Any]) -> str:
    return " or ".join(kind if isinstance(kind, str) else json.dumps(kind) for kind in kinds)


def _move(fields: list[dict[str, Any]], name: str, place: str) -> None:
    moved = fields.pop(_place_of(fields, name))
    if place == FIRST:
        fields.insert(0, moved)
        return
    if not place.startswith(AFTER):
        raise SchemaChangeError(f"the place {place!r} of column {name!r} is neither 'first' nor 'after COLUMN'")
    before = place.removeprefix(AFTER).strip()
    if before == name:
        raise SchemaChangeError(f"column {name!r} cannot come after itself: name another column")
    fields.insert(_place_of(fields, before) + 1, moved)


def _refuse_lost_definitions(root: Mapping[str, Any]) -> None:
    """Raises UnsupportedTableError if a column has the name of a type that no column before it defines any more."""
    defined: set[str] = set()
    for kind in chain.from_iterable(_types(column["type"]) for column in root["fields"]):
        if not isinstance(kind, str):
            defined.add(str(kind["name"]).rpartition(".")[2])
        elif kind not in _PRIMITIVES and kind.rpartition(".")[2] not in defined:
            raise UnsupportedTableError(
                f"the schema's type {kind} is defined by a column that would be dropped or come later, and used by another "
                "one: leave both in their order"
            )


def _types(kind: Any) -> Iterator[Any]:
    """Names of types, and definitions of named types, in the order in which Avro reads them."""
    if is_union(kind):
        yield from chain.from_iterable(map(_types, kind))
        return
    if isinstance(kind, str):
        yield kind
        return
    match kind["type"]:
        case "record" | "error":
            yield kind
            yield from chain.from_iterable(_types(inner["type"]) for inner in kind["fields"])
        case "enum" | "fixed":
            yield kind
        case "array":
            yield from _types(kind["items"])
        case "map":
            yield from _types(kind["values"])
        case other:
            yield from _types(other)
