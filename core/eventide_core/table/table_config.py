"""What `.hoodie/hoodie.properties` says of a table.

Raises UnsupportedTableError for what eventide does not know, so that no later step has to doubt it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.errors import NotAHudiTableError, UnsupportedTableError
from eventide_core.table.record_order import MergeRule

PROPERTIES_PATH = ".hoodie/hoodie.properties"
SUPPORTED_VERSIONS = (6, 8, 9)

_KEY_AND_VALUE = re.compile(r"(?P<key>(?:\\.|[^\\=])*)(?:=(?P<value>.*)|\\)?", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

_PAYLOADS = {
    "OverwriteWithLatestAvroPayload": MergeRule.COMMIT_TIME_ORDERING,
    "DefaultHoodieRecordPayload": MergeRule.EVENT_TIME_ORDERING,
    "EventTimeAvroPayload": MergeRule.EVENT_TIME_ORDERING,
}


@dataclass(frozen=True, slots=True)
class TableConfig:
    """A table's own settings. `properties` are the raw lines, unescaped.

    `reader_rules` are the rules by which the engines that can read the table merge it, `merge_rule` among them: Hudi 0.x
    has rules of its own for a version 6 table that it wrote (one that Hudi 1.x wrote names its ordering field under a key
    that 0.x does not know, so 0.x cannot be said to read it).
    """

    name: str
    version: int
    merge_rule: MergeRule
    reader_rules: tuple[MergeRule, ...]
    payload_class: str | None
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    base_file_extension: str
    timeline_path: str
    metadata_partitions: tuple[str, ...]
    properties: Mapping[str, str]

    @property
    def slices_by_completion_time(self) -> bool:
        """Whether a log belongs to a slice by its completion time (version 8 and later), not by its name (6)."""
        return self.version >= 8

    @property
    def archive_path(self) -> str:
        """The folder of the archived timeline."""
        if self.version >= 8:
            return f"{self.timeline_path}/{self.properties.get('hoodie.timeline.history.path', 'history').strip('/')}"
        return f".hoodie/{self.properties.get('hoodie.archivelog.folder', 'archived').strip('/')}".rstrip("/")

    @property
    def has_utc_instants(self) -> bool:
        """Whether instants are UTC; else they are in the local time zone of whoever writes, Hudi's default."""
        return self.properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC"

    @property
    def ordering_field(self) -> str | None:
        return self.ordering_fields[0] if self.ordering_fields else None

    @classmethod
    def parse(cls, text: str, root: str) -> "TableConfig":
        """The settings in the text of hoodie.properties; `root` names the table in errors."""
        properties = parse_properties(text)

        def names(key: str) -> tuple[str, ...]:
            return tuple(part.strip() for part in properties.get(key, "").split(",") if part.strip())

        if "hoodie.table.version" not in properties:
            raise NotAHudiTableError(f"{root}: hoodie.properties says no hoodie.table.version; is this a Hudi table?")
        try:
            version = int(properties["hoodie.table.version"])
        except ValueError:
            version = -1
        if version not in SUPPORTED_VERSIONS:
            raise UnsupportedTableError(
                f"{root}: table version {properties['hoodie.table.version']} is not one of "
                f"{', '.join(map(str, SUPPORTED_VERSIONS))}; upgrade or downgrade it with Hudi's own tools first"
            )
        _refuse_unknown(properties, root)
        ordering = names("hoodie.table.ordering.fields") or names("hoodie.table.precombine.field")
        if len(ordering) > 1:
            raise UnsupportedTableError(
                f"{root}: several ordering fields ({', '.join(ordering)}) are not supported yet"
            )
        rule = _merge_rule(properties, version, bool(ordering), root)
        timeline = properties.get("hoodie.timeline.path", "timeline").strip("/")
        return cls(
            name=properties.get("hoodie.table.name", ""),
            version=version,
            merge_rule=rule,
            reader_rules=_reader_rules(rule, version, properties),
            payload_class=_payload(properties),
            record_key_fields=names("hoodie.table.recordkey.fields"),
            # A field may carry its key generator's kind behind a colon, as in `ts:TIMESTAMP`.
            partition_fields=tuple(field.split(":")[0] for field in names("hoodie.table.partition.fields")),
            ordering_fields=ordering,
            base_file_extension=".parquet",
            timeline_path=f".hoodie/{timeline}" if version >= 8 else ".hoodie",
            metadata_partitions=names("hoodie.table.metadata.partitions"),
            properties=properties,
        )


def parse_properties(text: str) -> dict[str, str]:
    """A text of Java's `Properties.store` as a dictionary: comments dropped, escapes undone."""
    properties: dict[str, str] = {}
    for line in re.split(r"[\r\n]+", text):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        parts = _KEY_AND_VALUE.fullmatch(line)
        assert parts is not None, f"any line is a key and perhaps a value: {line!r}"
        key, value = parts.group("key", "value")
        properties[_unescaped(key.strip())] = _unescaped((value or "").strip())
    return properties


def _unescaped(text: str) -> str:
    # Java writes what is not Latin-1 in UTF-16, so a character may take two escapes.
    halves = _ESCAPE.sub(lambda match: _ESCAPED.get(match[1]) or _character(match[1]), text)
    return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) > 1 else escape


def _payload(properties: Mapping[str, str]) -> str | None:
    for key in ("hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class"):
        if properties.get(key):
            return properties[key]
    return None


def _is_written_by_hudi_0x(version: int, properties: Mapping[str, str]) -> bool:
    return version < 8 and bool(properties.get("hoodie.table.precombine.field"))


def _reader_rules(rule: MergeRule, version: int, properties: Mapping[str, str]) -> tuple[MergeRule, ...]:
    if not _is_written_by_hudi_0x(version, properties):
        return (rule,)
    if rule is MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST:
        return (rule, MergeRule.COMMIT_TIME_ORDERING)
    if rule is MergeRule.EVENT_TIME_ORDERING:
        return (rule, MergeRule.HUDI_0X_DEFAULT)
    return (rule,)


def _merge_rule(properties: Mapping[str, str], version: int, has_ordering: bool, root: str) -> MergeRule:
    mode = properties.get("hoodie.record.merge.mode")
    if mode in (MergeRule.COMMIT_TIME_ORDERING, MergeRule.EVENT_TIME_ORDERING):
        return MergeRule(mode)
    payload = _payload(properties)
    known = _PAYLOADS.get((payload or "").rpartition(".")[2])
    if mode is None and known is MergeRule.COMMIT_TIME_ORDERING and _is_written_by_hudi_0x(version, properties):
        # Hudi 1.x reads such a table in commit order, the engine that wrote it does not (docs/rfc74.md).
        return MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST
    if mode is None and known is not None:
        return known
    if mode is None and payload is None:
        return MergeRule.EVENT_TIME_ORDERING if has_ordering else MergeRule.COMMIT_TIME_ORDERING
    raise UnsupportedTableError(
        f"{root}: merge mode {mode or 'unset'} with payload {payload} is not known to merge like COMMIT_TIME_ORDERING or "
        "EVENT_TIME_ORDERING; compact this table with Hudi itself"
    )


def _refuse_unknown(properties: Mapping[str, str], root: str) -> None:
    if properties.get("hoodie.table.type", "COPY_ON_WRITE") != "MERGE_ON_READ":
        raise UnsupportedTableError(
            f"{root}: a {properties.get('hoodie.table.type', 'COPY_ON_WRITE')} table has no logs to compact; "
            "eventide is for MERGE_ON_READ tables"
        )
    if properties.get("hoodie.table.base.file.format", "PARQUET") != "PARQUET":
        raise UnsupportedTableError(
            f"{root}: base files of format {properties['hoodie.table.base.file.format']}; only PARQUET is supported"
        )
    refused = {
        "hoodie.table.cdc.enabled": "change data capture logs are not supported",
        "hoodie.table.multiple.base.file.formats.enable": "several base file formats in one table are not supported",
        "hoodie.datasource.write.drop.partition.columns": "partition columns left out of the files are not supported",
    }
    for key, why in refused.items():
        if properties.get(key, "false").lower() == "true":
            raise UnsupportedTableError(f"{root}: {key}=true: {why}")
    # Both make a merge pick single fields, or see deletes, by rules of their own.
    mode = "hoodie.table.partial.update.mode"
    for key in [mode, *(key for key in properties if key.startswith("hoodie.record.merge.property."))]:
        if properties.get(key):
            raise UnsupportedTableError(f"{root}: {key}={properties[key]} is not supported; use Hudi itself")
    if properties.get("hoodie.populate.meta.fields", "true").lower() != "true":
        raise UnsupportedTableError(f"{root}: a table without meta fields is not supported yet")
    if properties.get("hoodie.bootstrap.base.path"):
        raise UnsupportedTableError(f"{root}: a bootstrapped table is not supported; rewrite it with Hudi first")
