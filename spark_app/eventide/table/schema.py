"""Changes of a table's schema."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from eventide.table.arguments import require_columns, require_names, require_texts
from eventide.table.open_table import OpenTable, traced
from eventide_core.errors import ConfigError

if TYPE_CHECKING:
    from eventide_core.service.write.alter import AlterResult

_PLACED: Final = re.compile(r"(?P<kind>.+?)(?:\s+(?P<place>first|after\s+\S+))?", re.IGNORECASE)


class TableSchema(OpenTable):
    """The schema changes of `eventide.Table`."""

    __slots__ = ()

    @traced
    def alter(
        self,
        *,
        add: Mapping[str, Any] | None = None,
        widen: Mapping[str, Any] | None = None,
        move: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        rename: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> "AlterResult":
        """Changes the table's schema by one commit without files, in the order drop, widen, rename, add, move.

        `add` and `widen` state types by column: Arrow types, or words such as `double` and `decimal(10,2)`. An added column
        is null in the rows that exist, and comes last, unless its word says `first` or `after COLUMN`:
        `add={"fare": "double after ms"}`. `move` states such places for columns. A dropped column is in no query any more,
        and its name can't be used again. `rename` states new names by column, and needs a table whose schema evolves on
        read: the option `hoodie.schema.on.read.enable`, or a change that Hudi made with it. The result's `note` says which
        readers don't follow. `dry_run` writes nothing.

        Raises SchemaChangeError for a change that not every reader of Hudi tables follows, such as any other `rename`, and
        says what to do instead; InvalidColumnNameError; ConfigError for an unknown type; WriteConflictError if another
        writer changes the schema meanwhile.
        """
        from eventide_core.action.write.schema_alteration import SchemaAlteration

        for what, given in (("add", add), ("widen", widen), ("move", move), ("rename", rename)):
            if given is not None:
                require_columns(**{what: given})
        require_names(drop=drop)
        for old, new in (rename or {}).items():
            require_texts(**{f"rename[{old!r}]": new})
        for name, place in (move or {}).items():
            require_texts(**{f"move[{name!r}]": place})
        placed = {name: _placed(kind) for name, kind in (add or {}).items()}
        places = {name: place for name, (_, place) in placed.items() if place is not None}
        alteration = SchemaAlteration(
            add={name: self._avro(name, kind) for name, (kind, _) in placed.items()},
            widen={name: self._avro(name, kind) for name, kind in (widen or {}).items()},
            move=places | {name: _place(place) for name, place in (move or {}).items()},
            drop=drop,
            rename=rename or {},
        )
        return self._application.alter.alter(alteration, is_dry_run=dry_run)

    def _avro(self, name: str, kind: Any) -> Any:
        import pyarrow as pa

        from eventide_adapters.format.encoding.avro.from_arrow import avro_schema_of
        from eventide_adapters.format.encoding.avro.schema import arrow_schema
        from eventide_adapters.format.encoding.avro.type_words import TYPE_WORDS, type_of

        arrow_type = type_of(kind) if isinstance(kind, str) else kind
        if not isinstance(arrow_type, pa.DataType):
            raise ConfigError(f"column {name!r}: {kind!r} isn't a type; use an Arrow type, or one of {TYPE_WORDS}")
        schema = avro_schema_of(self._application.files.config().name, pa.schema([(name, arrow_type)]))
        arrow_schema(schema)  # refuses what no file can hold, such as a struct without fields
        (column,) = schema.parsed["fields"]
        return column["type"][1]


def _placed(kind: Any) -> tuple[Any, str | None]:
    """The type and the place of a new column."""
    match = _PLACED.fullmatch(kind.strip()) if isinstance(kind, str) else None
    if match is None:
        return kind, None
    return match["kind"], None if match["place"] is None else _place(match["place"])


def _place(text: str) -> str:
    word, _, column = text.strip().partition(" ")
    return " ".join(filter(None, (word.lower(), column.strip())))
