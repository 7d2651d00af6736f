"""Mergers of a user's own, for tables with the columns `id`, `part`, `ms` and `word` or `amount`."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class Longest:
    """The record with the longer word stays, and the newer one on a tie."""

    deletes = "COMMIT_TIME_ORDERING"
    is_associative = True

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        wins: Any = pc.greater_equal(_length(newer), _length(older))
        columns: list[Any] = [pc.if_else(wins, new, old) for old, new in zip(older.columns, newer.columns, strict=True)]
        return pa.Table.from_arrays(columns, schema=newer.schema)


class Joined:
    """The newer record, with the words of both, the older one first."""

    deletes = "EVENT_TIME_ORDERING"
    is_associative = True

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        return with_words(newer, _joined(older["word"], newer["word"], ""))


class Bracketed(Joined):
    """The same, with brackets that show in which order records were merged. So it isn't associative."""

    is_associative = False

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        return with_words(newer, _joined("(", older["word"], newer["word"], ")", ""))


class NoDeletes:
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:  # noqa: ARG002
        return newer


class NoMethod:
    deletes = "COMMIT_TIME_ORDERING"


class Short(Longest):
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:  # noqa: ARG002
        return newer.slice(1)


class OtherType(Longest):
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:  # noqa: ARG002
        return with_words(newer, pc.binary_length(newer["word"]))


class OtherColumns(Longest):
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:  # noqa: ARG002
        return newer.drop_columns(["word"])


class OtherKey(Longest):
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:  # noqa: ARG002
        place = newer.column_names.index("_hoodie_record_key")
        return newer.set_column(place, newer.schema.field(place), pa.repeat("x", len(newer)))


class Failing(Longest):
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:  # noqa: ARG002
        return newer.append_column("word", newer["no such column"])


class NoTable(Longest):
    def merge(self, older: pa.Table, newer: pa.Table) -> Any:  # noqa: ARG002
        return newer.to_pylist()


def with_words(rows: pa.Table, words: Any) -> pa.Table:
    return rows.set_column(rows.column_names.index("word"), "word", words)


def _joined(*texts: Any) -> Any:
    return pc.binary_join_element_wise(*texts)


def _length(rows: pa.Table) -> Any:
    lengths: Any = pc.binary_length(rows["word"])
    return lengths.fill_null(0)
