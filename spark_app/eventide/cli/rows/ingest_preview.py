"""What `eventide ingest --dry-run` shows of the first rows: columns, types, nulls, and event times that cannot be read."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np
import pyarrow as pa

from eventide.cli.console import table_of
from eventide.cli.text_table import Lines
from eventide.sources.rows import SourceRows
from eventide_adapters.format.encoding.columns.event_times import event_times_ms, unreadable_rows
from eventide_core.errors import UnsupportedTableError, counted
from eventide_core.table.schema.avro_names import sanitized
from eventide_core.table.schema.avro_schema import META_FIELDS

PREVIEW_ROWS: Final = 10_000
_SHOWN: Final = 5


def preview(
    source_rows: SourceRows, table: Mapping[str, Any] | None, event_time: str | None, *, sanitizes: bool
) -> tuple[dict[str, Any], tuple[str | Lines, ...]]:
    """The document and the text. `table` has the types of the table's columns; None if there is no table yet."""
    rows = source_rows.rows
    names = {name: sanitized(name) if sanitizes else name for name in rows.column_names}
    columns = [
        {
            "name": name,
            "type": str(rows.schema.field(name).type),
            "nulls": rows.column(name).null_count,
            "table_type": None if table is None or names[name] not in table else str(table[names[name]]),
        }
        for name in rows.column_names
    ]
    missing = [name for name in table or () if name not in names.values() and name not in META_FIELDS]
    unreadable, examples = _unreadable(source_rows, event_time)
    document = {
        "dry_run": True,
        "rows_read": len(rows),
        "columns": columns,
        "missing_columns": missing,
        "event_time": event_time,
        "unreadable_event_times": unreadable,
        "unreadable_examples": examples,
    }
    headers = ("column", "type", "nulls", "in the table")
    cells = [(c["name"], c["type"], c["nulls"], c["table_type"] or "new") for c in columns]
    shown = len(headers) if table is not None else len(headers) - 1
    lines = table_of("", headers[:shown], [row[:shown] for row in cells])
    sentences = [f"dry run: {counted(len(rows), 'row')} read, nothing written"]
    if missing:
        sentences.append(f"columns of the table that the sources lack: {', '.join(missing)}")
    if unreadable:
        sentences.append(f"{counted(unreadable, 'event time')} in {event_time!r} cannot be read: {'; '.join(examples)}")
    return document, (lines, "\n".join(sentences))


def _unreadable(source_rows: SourceRows, event_time: str | None) -> tuple[int, list[str]]:
    """How many event times cannot be read, and the first of them with their places."""
    if event_time is None or event_time not in source_rows.rows.column_names:
        return 0, []
    column: Any = source_rows.rows.column(event_time).combine_chunks()
    with suppress(UnsupportedTableError, pa.ArrowException):
        bad = np.flatnonzero(unreadable_rows(column, event_times_ms(column)))
        return len(bad), [f"{source_rows.place_of(int(row))}: {column[int(row)].as_py()!r}" for row in bad[:_SHOWN]]
    return 0, []
