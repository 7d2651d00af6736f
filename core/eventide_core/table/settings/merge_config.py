"""How a table's records merge, by its properties.

1. The merge mode of version 8 and later states the rule. Without one, the payload class does, as in version 6; without
   either the ordering field: by event time where there is one, else by commit.
2. Of Hudi 1's properties for a merge the delete marker is followed, and on version 9 the partial update modes that Hudi
   1.1 and 1.2 know (table/records/partial_update.py). A payload, a strategy or a mode beyond that is refused.
3. Merge mode CUSTOM of version 8 is followed for payloads that are an order of versions, with or without the columns that a
   version leaves out (`_is_custom_payload`). For EventTimeAvroPayload, as Flink and the Java client of Hudi 1.0 declare it,
   engines and versions differ where deletes are among the versions, so they count as readers with rules of their own
   (record_order).
4. Merge mode CUSTOM with a strategy that isn't Hudi's names a user-defined Java merger. It is followed if the user
   has mapped the strategy to a Python class that merges alike (table/records/custom_merger.py), from version 8 on.
5. Version 9 has made ordering fields, a delete marker or a partial update mode out of Hudi's payloads. Below it the same
   payloads run code of their own. Hudi 1 merges some of them like version 9 does; Hudi 0.x, whose own tables of version 6
   these are, fills columns by other rules. What the two read differently is refused (`_REFUSED_PAYLOADS`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.errors import UnsupportedTableError
from eventide_core.table import property_keys as keys
from eventide_core.table.records.custom_merger import CustomMerger, CustomMergers
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import DeleteMarker, PartialUpdate
from eventide_core.table.settings.properties import names

_UNAVAILABLE = f"{keys.RECORD_MERGE_PROPERTY_PREFIX}hoodie.write.partial.update.unavailable.value"
_KNOWN_MERGE_PROPERTIES = (keys.DELETE_FIELD, keys.DELETE_MARKER, _UNAVAILABLE)
_USE_HUDI = "compact this table with Hudi itself"
# In this order: an upgrade from version 6 compacts, too, and by the later Hudi's rules.
_COMPACT_THEN_UPGRADE = "compact this table with the Hudi that writes it, then upgrade it to version 9"

_PAYLOADS = {
    "OverwriteWithLatestAvroPayload": MergeRule.COMMIT_TIME_ORDERING,
    "DefaultHoodieRecordPayload": MergeRule.EVENT_TIME_ORDERING,
    "EventTimeAvroPayload": MergeRule.EVENT_TIME_ORDERING,
}
_MODES = {
    MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST: MergeRule.COMMIT_TIME_ORDERING,
    MergeRule.HUDI_0X_DEFAULT: MergeRule.EVENT_TIME_ORDERING,
}
_PAYLOAD_KEYS = (keys.PAYLOAD_CLASS_NAME, keys.LEGACY_PAYLOAD_CLASS_NAME)
_REFUSED_PAYLOADS = {
    "PartialUpdateAvroPayload": (
        "fills what is null in the newer version from the older one; Hudi 0.x orders deletes among them, and Hudi 1 doesn't"
    ),
    "OverwriteNonDefaultsWithLatestAvroPayload": (
        "keeps the older value where the newer one is its column's default; Hudi 0.x takes it from the base file alone, and "
        "Hudi 1 from log files, too"
    ),
    "PostgresDebeziumAvroPayload": (
        "fills what Postgres left out of the newer version from the older one; below version 9, Hudi 0.x takes it from the "
        "base file alone, Hudi 1.0 from log files, too, and Hudi 1.1 and 1.2 lose it"
    ),
    "ExpressionPayload": "computes records by the expressions of a MERGE INTO, which the table doesn't hold",
    "AWSDmsAvroPayload": "takes deletes from the column Op by code of its own",
    "MySqlDebeziumAvroPayload": (
        "orders by places in MySQL's log; below version 9, Hudi 0.x compares places of log records as texts, and of two at "
        "one place Hudi 1.0 keeps the earlier row, Hudi 1.1 and 1.2 the later one"
    ),
}
_DECLARED_FROM_VERSION_9 = (
    "AWSDmsAvroPayload",
    "MySqlDebeziumAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
    "PartialUpdateAvroPayload",
    "PostgresDebeziumAvroPayload",
)
MERGERS_OPTION = "eventide.record.mergers"  # of the configuration, which this package doesn't know
_CUSTOM = "CUSTOM"
_CUSTOM_BY_EVENT_TIME = "EventTimeAvroPayload"
_DMS, _DMS_DELETE = "AWSDmsAvroPayload", DeleteMarker("Op", "D")
_NON_DEFAULTS, _PARTIAL_UPDATE = "OverwriteNonDefaultsWithLatestAvroPayload", "PartialUpdateAvroPayload"
_FILLING = (_NON_DEFAULTS, _PARTIAL_UPDATE)
_BELOW_VERSION_9_IN_HUDI_1 = {
    _DMS: MergeRule.COMMIT_TIME_ORDERING,
    _NON_DEFAULTS: MergeRule.COMMIT_TIME_ORDERING,
    _PARTIAL_UPDATE: MergeRule.EVENT_TIME_ORDERING,
}
_BY_THE_PAYLOAD = "00000000-0000-0000-0000-000000000000"
_BY_EVENT_TIME, _BY_COMMIT_TIME = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d"
_STRATEGIES = {
    _BY_EVENT_TIME: "by event time",
    _BY_COMMIT_TIME: "by commit time",
    _BY_THE_PAYLOAD: "by the payload",
}
_STRATEGY_OF_MODE: dict[str | None, str] = {
    MergeRule.EVENT_TIME_ORDERING: _BY_EVENT_TIME,
    MergeRule.COMMIT_TIME_ORDERING: _BY_COMMIT_TIME,
}


@dataclass(frozen=True, slots=True)
class MergeConfig:
    """How versions of a record merge, by a table's settings.

    `rule` is the table's own, by which compactions merge. `reader_rules` are the rules of each kind of engine that reads the
    table, `rule` among them (see TableConfig). `payload_class` is Hudi's, as written; None if the table states none.
    `ordering_fields` are empty without an order. `delete_marker`, `partial_update`, `orders_deletes` and `merger`: see
    RecordShape.
    """

    rule: MergeRule
    reader_rules: tuple[MergeRule, ...]
    payload_class: str | None
    ordering_fields: tuple[str, ...]
    delete_marker: DeleteMarker | None
    partial_update: PartialUpdate | None
    orders_deletes: bool
    merger: CustomMerger | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str], version: int, root: str, mergers: CustomMergers = ()) -> "MergeConfig":
        """Raises UnsupportedTableError, naming the property, for a merge that is more than an order of versions.

        A user-defined merger is more, too, unless `mergers` has it.
        """
        ordering = names(properties, keys.ORDERING_FIELDS) or names(properties, keys.PRECOMBINE_FIELD)
        is_0x = version < 8 and bool(properties.get(keys.PRECOMBINE_FIELD))
        if is_0x and len(ordering) > 1:
            raise UnsupportedTableError(
                f"{root}: {keys.PRECOMBINE_FIELD}={properties[keys.PRECOMBINE_FIELD]}: Hudi 0.x, whose key this is, "
                f"orders by one field, and other readers by all of them; set {keys.ORDERING_FIELDS} instead if only "
                "Hudi 1 uses the table"
            )
        if is_0x and any("." in name for name in ordering):
            raise UnsupportedTableError(
                f"{root}: {keys.PRECOMBINE_FIELD}={properties[keys.PRECOMBINE_FIELD]}: Hudi 0.x, whose key this is, "
                "doesn't find a field of a record where it orders log records, and other readers do; upgrade the table "
                "to version 9 with Hudi 1"
            )
        merger = _merger(properties, version, root, mergers)
        if merger is None:
            rule = _merge_rule(properties, version, root, has_ordering=bool(ordering), is_0x=is_0x)
            is_by_event_time = _is_custom_by_event_time(properties)
            rules = _reader_rules(rule, is_0x=is_0x, is_custom_by_event_time=is_by_event_time)
        else:
            rule, rules = MergeRule.CUSTOM, (MergeRule.CUSTOM,)
        is_by_payload = merger is None and version < 9 and properties.get(keys.RECORD_MERGE_MODE, _CUSTOM) == _CUSTOM
        payload = _payload_name(properties) if is_by_payload else ""
        return cls(
            rule=rule,
            reader_rules=rules,
            payload_class=_payload(properties),
            ordering_fields=ordering,
            delete_marker=_DMS_DELETE if payload == _DMS else _delete_marker(properties, root),
            partial_update=PartialUpdate(None) if payload in _FILLING else _partial_update(properties, version, root),
            orders_deletes=payload != _PARTIAL_UPDATE,
            merger=merger,
        )

    @classmethod
    def unused(cls, properties: Mapping[str, str]) -> "MergeConfig":
        """The configuration of a copy-on-write table: no reader merges, whatever its writers merge by."""
        ordering = names(properties, keys.ORDERING_FIELDS) or names(properties, keys.PRECOMBINE_FIELD)
        rule = MergeRule.COMMIT_TIME_ORDERING
        return cls(rule, (rule,), _payload(properties), ordering, None, None, orders_deletes=True)


def words_of_merge(properties: Mapping[str, str], rule: MergeRule) -> frozenset[str]:
    """The modes, strategies and payload classes, without packages, by which writers name how this table merges."""
    stated = (keys.RECORD_MERGE_MODE, keys.RECORD_MERGE_STRATEGY_ID, keys.RECORD_MERGER_STRATEGY)
    mode = properties.get(keys.RECORD_MERGE_MODE) or _MODES.get(rule, rule)
    payload = _payload_name(properties)
    is_plain = payload in ("", *_PAYLOADS) and properties.get(keys.PARTIAL_UPDATE_MODE, "NONE") == "NONE"
    payloads = {name for name, of_payload in _PAYLOADS.items() if is_plain and of_payload == mode}
    words = {*(properties.get(key, "") for key in stated), _STRATEGY_OF_MODE.get(mode, ""), mode, payload, *payloads}
    return frozenset(words - {""})


def _payload(properties: Mapping[str, str]) -> str | None:
    return next((properties[key] for key in _PAYLOAD_KEYS if properties.get(key)), None)


def _payload_name(properties: Mapping[str, str]) -> str:
    return (_payload(properties) or "").rpartition(".")[2]


def _reader_rules(rule: MergeRule, *, is_0x: bool, is_custom_by_event_time: bool) -> tuple[MergeRule, ...]:
    if is_custom_by_event_time:
        return (rule, MergeRule.HUDI_0X_DEFAULT, MergeRule.HUDI_1_1_CUSTOM_PAYLOAD)
    if is_0x and rule is MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST:
        return (rule, MergeRule.COMMIT_TIME_ORDERING)
    if is_0x and rule is MergeRule.EVENT_TIME_ORDERING:
        return (rule, MergeRule.HUDI_0X_DEFAULT)
    return (rule,)


def _merger(properties: Mapping[str, str], version: int, root: str, mergers: CustomMergers) -> CustomMerger | None:
    """The merger that the table's strategy is mapped to; None if the strategy is Hudi's own or not in force."""
    strategy = properties.get(keys.RECORD_MERGE_STRATEGY_ID)
    if version < 8 or properties.get(keys.RECORD_MERGE_MODE) != _CUSTOM or not strategy or strategy in _STRATEGIES:
        return None
    merger = dict(mergers).get(strategy)
    if merger is None:
        raise UnsupportedTableError(
            f"{root}: {keys.RECORD_MERGE_STRATEGY_ID}={strategy} is none of Hudi's own strategies "
            f"({', '.join(_STRATEGIES.values())}), so a merger of its owner's decides; map it to a Python class that merges "
            f"alike, by the option {MERGERS_OPTION}={strategy}=MODULE:CLASS, or {_USE_HUDI}"
        )
    if properties.get(keys.PARTIAL_UPDATE_MODE, "NONE") != "NONE":
        raise UnsupportedTableError(
            f"{root}: {keys.PARTIAL_UPDATE_MODE}={properties[keys.PARTIAL_UPDATE_MODE]} beside "
            f"{keys.RECORD_MERGE_STRATEGY_ID}={strategy}, the merger {merger.name}: a merger of the owner's merges "
            f"whole records; {_USE_HUDI}"
        )
    return merger


def _merge_rule(
    properties: Mapping[str, str], version: int, root: str, *, has_ordering: bool, is_0x: bool
) -> MergeRule:
    mode = properties.get(keys.RECORD_MERGE_MODE)
    if mode in _STRATEGY_OF_MODE:
        _refuse_contradiction(properties, version, root)
        return MergeRule(properties[keys.RECORD_MERGE_MODE])
    payload = _payload(properties)
    name = _payload_name(properties)
    if payload is not None and name not in _PAYLOADS and not _is_known_below_version_9(name, version, is_0x=is_0x):
        why = _REFUSED_PAYLOADS.get(name, "is code that only its owner's engine has")
        cure = _COMPACT_THEN_UPGRADE if name in _DECLARED_FROM_VERSION_9 and version < 9 else _USE_HUDI
        key = next(key for key in _PAYLOAD_KEYS if properties.get(key))
        raise UnsupportedTableError(f"{root}: {key}={payload} {why}; {cure}")
    _refuse_strategy(properties, root)
    if mode is not None and not _is_custom_payload(properties, name, version):
        raise UnsupportedTableError(
            f"{root}: {keys.RECORD_MERGE_MODE}={mode}: records are merged by code that only its owner's engine has; "
            f"{_USE_HUDI}"
        )
    if payload is None:
        return MergeRule.EVENT_TIME_ORDERING if has_ordering else MergeRule.COMMIT_TIME_ORDERING
    rule = _PAYLOADS.get(name) or _BELOW_VERSION_9_IN_HUDI_1[name]
    if rule is MergeRule.COMMIT_TIME_ORDERING and is_0x:
        # Hudi 1.x reads such a table in commit order, the engine that wrote it does not (docs/rfc74.md).
        return MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST
    return rule


def _is_known_below_version_9(payload: str, version: int, *, is_0x: bool) -> bool:
    """Whether the readers of such a table merge this payload alike, or by an order of versions that eventide knows."""
    if is_0x:
        return payload == _DMS
    return version < 9 and payload in _BELOW_VERSION_9_IN_HUDI_1


def _is_custom_by_event_time(properties: Mapping[str, str]) -> bool:
    return properties.get(keys.RECORD_MERGE_MODE) == _CUSTOM and _payload_name(properties) == _CUSTOM_BY_EVENT_TIME


def _is_custom_payload(properties: Mapping[str, str], payload: str, version: int) -> bool:
    """Whether merge mode CUSTOM stands for a payload that eventide knows."""
    strategy = properties.get(keys.RECORD_MERGE_STRATEGY_ID) or _BY_THE_PAYLOAD
    is_known = payload == _CUSTOM_BY_EVENT_TIME or (version < 9 and payload in _BELOW_VERSION_9_IN_HUDI_1)
    return properties[keys.RECORD_MERGE_MODE] == _CUSTOM and is_known and strategy == _BY_THE_PAYLOAD


def _refuse_contradiction(properties: Mapping[str, str], version: int, root: str) -> None:
    """On version 9, the mode alone decides."""
    mode, strategy = properties[keys.RECORD_MERGE_MODE], properties.get(keys.RECORD_MERGE_STRATEGY_ID)
    if version == 8 and strategy and strategy != _STRATEGY_OF_MODE[mode]:
        raise UnsupportedTableError(
            f"{root}: {keys.RECORD_MERGE_STRATEGY_ID}={strategy} contradicts {keys.RECORD_MERGE_MODE}={mode}, whose "
            f"strategy is {_STRATEGY_OF_MODE[mode]}: Hudi opens no such table of version 8; find out by which of the "
            "two its writers merged, and set both to that"
        )


def _refuse_strategy(properties: Mapping[str, str], root: str) -> None:
    for key in (keys.RECORD_MERGE_STRATEGY_ID, keys.RECORD_MERGER_STRATEGY):
        strategy = properties.get(key)
        if strategy and strategy not in _STRATEGIES:
            raise UnsupportedTableError(
                f"{root}: {key}={strategy} is none of Hudi's own strategies ({', '.join(_STRATEGIES.values())}), so a "
                f"merger of its owner's decides; {_USE_HUDI}"
            )


def _partial_update(properties: Mapping[str, str], version: int, root: str) -> PartialUpdate | None:
    mode = properties.get(keys.PARTIAL_UPDATE_MODE)
    if not mode or mode == "NONE":
        return None
    if version < 9:
        raise UnsupportedTableError(
            f"{root}: {keys.PARTIAL_UPDATE_MODE}={mode}: Hudi knows it from table version 9 on, and this is version "
            f"{version}; upgrade the table, or {_USE_HUDI}"
        )
    if mode == "IGNORE_DEFAULTS":
        return PartialUpdate(None)
    if mode != "FILL_UNAVAILABLE":
        raise UnsupportedTableError(
            f"{root}: {keys.PARTIAL_UPDATE_MODE}={mode} is neither IGNORE_DEFAULTS nor FILL_UNAVAILABLE, the modes of "
            f"Hudi 1.1 and 1.2; set one of them, or {_USE_HUDI}"
        )
    marker = properties.get(_UNAVAILABLE)
    if not marker:
        raise UnsupportedTableError(
            f"{root}: {keys.PARTIAL_UPDATE_MODE}={mode} without {_UNAVAILABLE}, the string that stands for an "
            "unavailable value; set it"
        )
    return PartialUpdate(marker)


def _delete_marker(properties: Mapping[str, str], root: str) -> DeleteMarker | None:
    for key, value in properties.items():
        if key.startswith(keys.RECORD_MERGE_PROPERTY_PREFIX) and key not in _KNOWN_MERGE_PROPERTIES and value:
            raise UnsupportedTableError(
                f"{root}: {key}={value}: eventide doesn't know what it does to a merge; {_USE_HUDI}"
            )
    field, marker = properties.get(keys.DELETE_FIELD), properties.get(keys.DELETE_MARKER)
    if field and marker:
        return DeleteMarker(field, marker)
    if field or marker:
        present, missing = (keys.DELETE_FIELD, keys.DELETE_MARKER) if field else (keys.DELETE_MARKER, keys.DELETE_FIELD)
        raise UnsupportedTableError(
            f"{root}: {present}={field or marker} without {missing}, which no reader can apply: set both, or neither"
        )
    return None
