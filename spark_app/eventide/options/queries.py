"""The options of queries with format("eventide") and `eventide read`."""

from enum import StrEnum

from eventide_core.config.option import TEXT, Option, choice, optional


class QueryType(StrEnum):
    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class IncrementalFormat(StrEnum):
    """What an incremental query returns: the latest state of the rows that changed, or each change."""

    LATEST_STATE = "latest_state"
    CDC = "cdc"


QUERY_TYPE = Option(
    "hoodie.datasource.query.type",
    choice(QueryType),
    QueryType.SNAPSHOT,
    "The kind of query.",
    aliases=("hoodie.datasource.view.type",),
)
AS_OF = optional("as.of.instant", TEXT, "A snapshot as of this instant, including it.", otherwise="now")
AS_OF_WATERMARK = optional(
    "as.of.watermark", TEXT, "A read-optimized query as of a watermark, a T. Hudi has no such key."
)
AS_OF_TAG = optional(
    "as.of.tag", TEXT, "A snapshot or read-optimized query as of the savepoint with this tag. Hudi has no such key."
)
BEGIN = optional(
    "hoodie.datasource.read.begin.instanttime",
    TEXT,
    "The begin of an incremental query, excluding it: a completion time (on version 6 an instant), or `earliest`.",
    otherwise="none; an incremental query needs one",
)
END = optional(
    "hoodie.datasource.read.end.instanttime",
    TEXT,
    "The end of an incremental query, including it.",
    otherwise="the last commit",
)
INCREMENTAL_FORMAT = Option(
    "hoodie.datasource.query.incremental.format",
    choice(IncrementalFormat),
    IncrementalFormat.LATEST_STATE,
    "What an incremental query returns: the rows that changed, or with cdc each change (op, ts_ms, before, after) of a "
    "table with change data capture.",
)
DELETE_FIELD = optional(
    "hoodie.payload.delete.field", TEXT, "The column by which a record deletes its key, for readers. Needs the marker."
)
DELETE_MARKER = optional("hoodie.payload.delete.marker", TEXT, "The value of that column that deletes.")
