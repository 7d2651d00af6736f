"""What the core asks of the world: each port with its guarantees in words.

Every path is relative to the table's root, with forward slashes; an adapter refuses one that would leave the root with
UnsafePathError. An adapter answers a failing world with StorageError or EngineError, never with a foreign exception.
"""

from eventide_core.ports.catalog import Catalog, DatasetCatalog
from eventide_core.ports.content import (
    BaseContent,
    ContentAudit,
    LogContent,
    LogSummary,
    RecordContent,
    SplitSlice,
    TimedKey,
    UnreadableEventTime,
)
from eventide_core.ports.locking import Heartbeats, Lease, TableLock
from eventide_core.ports.metadata_table import (
    AddedFile,
    FileAnswers,
    FileChanges,
    MetadataLog,
    MetadataTable,
    MetadataTableState,
    MetadataUpdate,
    NewMetadataContent,
    NewMetadataTable,
    StagedLog,
    WrittenRows,
)
from eventide_core.ports.metrics import MetricsSink, Unreported
from eventide_core.ports.records import (
    Batches,
    IncomingRecords,
    KeyIndex,
    LinkedLog,
    LogRange,
    MergedSlice,
    MergeResult,
    MergeTask,
    SliceMerger,
    SliceReader,
)
from eventide_core.ports.running import BackgroundEngine, Clock, Engine, NoProgress, Progress, RunningTask
from eventide_core.ports.storage import (
    WHOLE_FILE_BYTES_MAX,
    Capability,
    FileInfo,
    KeyedFiles,
    OutputFile,
    Storage,
    VersionedFiles,
)
from eventide_core.ports.timeline import ArchivedAction, ArchivedFile, ArchivedTimeline, MetadataCodec
from eventide_core.ports.windows import WindowContent

__all__ = [
    "WHOLE_FILE_BYTES_MAX",
    "AddedFile",
    "ArchivedAction",
    "ArchivedFile",
    "ArchivedTimeline",
    "BackgroundEngine",
    "BaseContent",
    "Batches",
    "Capability",
    "Catalog",
    "Clock",
    "ContentAudit",
    "DatasetCatalog",
    "Engine",
    "FileAnswers",
    "FileChanges",
    "FileInfo",
    "Heartbeats",
    "IncomingRecords",
    "KeyIndex",
    "KeyedFiles",
    "Lease",
    "LinkedLog",
    "LogContent",
    "LogRange",
    "LogSummary",
    "MergeResult",
    "MergeTask",
    "MergedSlice",
    "MetadataCodec",
    "MetadataLog",
    "MetadataTable",
    "MetadataTableState",
    "MetadataUpdate",
    "MetricsSink",
    "NewMetadataContent",
    "NewMetadataTable",
    "NoProgress",
    "OutputFile",
    "Progress",
    "RecordContent",
    "RunningTask",
    "SliceMerger",
    "SliceReader",
    "SplitSlice",
    "StagedLog",
    "Storage",
    "TableLock",
    "TimedKey",
    "UnreadableEventTime",
    "Unreported",
    "VersionedFiles",
    "WindowContent",
    "WrittenRows",
]
