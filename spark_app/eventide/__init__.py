"""Event-time based partial compaction for Apache Hudi tables.

Each name is imported on first use, so that a process that needs few of them starts fast.
"""

from importlib import import_module

TYPE_CHECKING = False  # for type checkers true; `typing` itself would be a part of the start
if TYPE_CHECKING:
    from typing import Any

    from eventide.datasource.register import register
    from eventide.datasource.streaming import stream_sink
    from eventide.options.sections import UnknownOptionWarning
    from eventide.results.detail import Detail
    from eventide.results.history import HistoryEntry
    from eventide.results.plan import Plan
    from eventide.rows.reader import Rows
    from eventide.table.catalog import Catalog
    from eventide.table.cut import Cut, at
    from eventide.table.table import Table
    from eventide.table.window import Window, Windows
    from eventide_core.action.freshness.freshness import Freshness
    from eventide_core.action.write.pending_write import WriteResult
    from eventide_core.errors import *
    from eventide_core.service.write.alter import AlterResult

    __version__: str

__all__ = [
    "AlterResult",
    "BusyError",
    "Catalog",
    "CatalogError",
    "CleanedHistoryError",
    "CleanedWhileReadingError",
    "CompletedMeanwhileError",
    "ConfigError",
    "CorruptBaseFileError",
    "CorruptLogBlockError",
    "CorruptTimelineError",
    "Cut",
    "DatabaseNotFoundError",
    "Detail",
    "EmptyPlanError",
    "EngineError",
    "EventideError",
    "Freshness",
    "HistoryEntry",
    "InstantNotFoundError",
    "InvalidColumnNameError",
    "InvalidFilterError",
    "InvalidRecordError",
    "InvalidThresholdError",
    "LockError",
    "LockLostError",
    "MachineResourcesError",
    "MarkerError",
    "MetadataTableBusyError",
    "MissingFileError",
    "NoExactCutError",
    "NotAHudiTableError",
    "NothingToDoError",
    "Plan",
    "PlanMismatchError",
    "RecordDecodeError",
    "RecordMergerError",
    "RefusedError",
    "ResourceLimitError",
    "Rows",
    "SchemaChangeError",
    "StorageAccessError",
    "StorageError",
    "StorageFullError",
    "Table",
    "TagNotFoundError",
    "UnknownOptionWarning",
    "UnsafePathError",
    "UnsupportedEngineError",
    "UnsupportedLogFormatError",
    "UnsupportedTableError",
    "WatermarkNotFoundError",
    "Window",
    "WindowTakenError",
    "Windows",
    "WorkerPackagesError",
    "WriteConflictError",
    "WriteResult",
    "__version__",
    "at",
    "register",
    "stream_sink",
]

_HOMES = {
    "AlterResult": "eventide_core.service.write.alter",
    "Detail": "eventide.results.detail",
    "HistoryEntry": "eventide.results.history",
    "UnknownOptionWarning": "eventide.options.sections",
    "Plan": "eventide.results.plan",
    "Rows": "eventide.rows.reader",
    "register": "eventide.datasource.register",
    "stream_sink": "eventide.datasource.streaming",
    "Catalog": "eventide.table.catalog",
    "Cut": "eventide.table.cut",
    "at": "eventide.table.cut",
    "Table": "eventide.table.table",
    "Window": "eventide.table.window",
    "Windows": "eventide.table.window",
    "Freshness": "eventide_core.action.freshness.freshness",
    "WriteResult": "eventide_core.action.write.pending_write",
}


def __getattr__(name: str) -> "Any":
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("eventide")
    elif name in __all__:
        value = getattr(import_module(_HOMES.get(name, "eventide_core.errors")), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
