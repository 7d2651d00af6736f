"""What a new Hudi table is made of: its settings, and the `hoodie.properties` that say them to every engine."""

import zlib
from dataclasses import dataclass
from typing import Final

from eventide_adapters.format.bloom_filter import DEFAULT_PARAMETERS, BloomParameters
from eventide_core.errors import ConfigError
from eventide_core.table.record_order import MergeRule
from eventide_core.table.table_config import SUPPORTED_VERSIONS

_MODEL: Final = "org.apache.hudi.common.model"
_KEY_GENERATORS: Final = "org.apache.hudi.keygen"
_PAYLOADS: Final = {
    MergeRule.COMMIT_TIME_ORDERING: f"{_MODEL}.OverwriteWithLatestAvroPayload",
    MergeRule.EVENT_TIME_ORDERING: f"{_MODEL}.DefaultHoodieRecordPayload",
}
_DEFAULT_MERGER: Final = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"


@dataclass(frozen=True, slots=True)
class NewTable:
    """The settings of a merge-on-read table with a bucket index. `schema` is its Avro schema, without meta fields.

    One record key field; one partition field, or None for a table of one partition. `event_time_field` is tracked in
    write stats where Hudi tracks it (version 9, event-time ordering), and with `has_block_event_times` in the blocks'
    headers, which stock readers pass over. `buckets` is the number of file groups of a partition.
    """

    name: str
    schema: str
    version: int
    merge_rule: MergeRule
    record_key_field: str
    partition_field: str | None
    ordering_field: str
    event_time_field: str | None = None
    buckets: int = 1
    has_block_event_times: bool = False
    bloom: BloomParameters = DEFAULT_PARAMETERS
    codec: str = "gzip"

    def __post_init__(self) -> None:
        if self.version not in SUPPORTED_VERSIONS:
            raise ConfigError(f"table version {self.version} is not one of {', '.join(map(str, SUPPORTED_VERSIONS))}")
        if self.merge_rule not in _PAYLOADS:
            raise ConfigError(f"merge rule {self.merge_rule} is not one of {', '.join(_PAYLOADS)}")
        if self.buckets < 1:
            raise ConfigError(f"{self.buckets} buckets: a partition needs at least one")

    @property
    def tracks_event_times(self) -> bool:
        """Whether Hudi would leave event times in the write stats of this table's logs."""
        return (
            self.event_time_field is not None and self.version >= 8 and self.merge_rule is MergeRule.EVENT_TIME_ORDERING
        )

    def partition_path(self, value: str) -> str:
        """The folder of a partition, in Hive's style."""
        return f"{self.partition_field}={value}"

    def properties(self) -> str:
        """The text of hoodie.properties."""
        pairs = {
            "hoodie.table.name": self.name,
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": str(self.version),
            "hoodie.table.recordkey.fields": self.record_key_field,
            "hoodie.table.base.file.format": "PARQUET",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.table.cdc.enabled": "false",
            # Hudi checks it at every load: the CRC-32 of "<database>.<table>".
            "hoodie.table.checksum": str(zlib.crc32(f".{self.name}".encode())),
            "hoodie.database.name": "",
            "hoodie.populate.meta.fields": "true",
            "hoodie.partition.metafile.use.base.format": "false",
            "hoodie.datasource.write.drop.partition.columns": "false",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.partitionpath.urlencode": "false",
            **(self._version_6() if self.version < 8 else self._version_9()),
        }
        if self.partition_field is not None:
            pairs["hoodie.table.partition.fields"] = self.partition_field
        return "".join(f"{key}={value}\n" for key, value in pairs.items())

    def _version_6(self) -> dict[str, str]:
        generator = "SimpleKeyGenerator" if self.partition_field is not None else "NonpartitionedKeyGenerator"
        return {
            "hoodie.timeline.layout.version": "1",
            "hoodie.archivelog.folder": "archived",
            "hoodie.table.precombine.field": self.ordering_field,
            "hoodie.table.keygenerator.class": f"{_KEY_GENERATORS}.{generator}",
            "hoodie.compaction.payload.class": _PAYLOADS[self.merge_rule],
            "hoodie.compaction.record.merger.strategy": _DEFAULT_MERGER,
        }

    def _version_9(self) -> dict[str, str]:
        return {
            "hoodie.table.initial.version": str(self.version),
            "hoodie.table.format": "native",
            "hoodie.timeline.layout.version": "2",
            "hoodie.timeline.path": "timeline",
            "hoodie.timeline.history.path": "history",
            "hoodie.archivelog.folder": "history",
            "hoodie.table.ordering.fields": self.ordering_field,
            "hoodie.table.keygenerator.type": "SIMPLE" if self.partition_field is not None else "NON_PARTITION",
            "hoodie.record.merge.mode": self.merge_rule,
            "hoodie.table.multiple.base.file.formats.enable": "false",
        }
