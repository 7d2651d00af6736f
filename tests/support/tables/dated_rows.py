"""Rows with deletes among them, hours after a day that is before each row of `small`."""

import pyarrow as pa

from support.tables.small import HOUR_MS, LATER_MS, SCHEMA

DAY_MS = LATER_MS - 240 * HOUR_MS
WITH_DELETES = pa.schema([*SCHEMA, pa.field("_hoodie_is_deleted", pa.bool_())])


def rows(*values: tuple[str, int, str]) -> pa.Table:
    """Rows of one partition: key, hours, and the word, which is "deleted" for a delete."""
    records = [
        {"id": key, "part": "a", "ms": DAY_MS + hours * HOUR_MS, "word": word, "_hoodie_is_deleted": word == "deleted"}
        for key, hours, word in values
    ]
    return pa.Table.from_pylist(records, schema=WITH_DELETES)
