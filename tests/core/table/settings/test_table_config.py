"""hoodie.properties: known settings are read, and unknown ones are refused by name."""

import pytest

from eventide_core.errors import NotAHudiTableError, UnsupportedTableError
from eventide_core.table.records.custom_merger import CustomMerger
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import DeleteMarker, PartialUpdate
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.layout import layout_of
from support.files.java_properties import properties_text

V6 = {
    "hoodie.table.name": "trips",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.table.precombine.field": "ts",
    "hoodie.table.recordkey.fields": "a,b",
    "hoodie.table.partition.fields": "part,day:TIMESTAMP",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
V9 = {
    "hoodie.table.name": "trips",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "9",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.timeline.path": "timeline",
    "hoodie.table.metadata.partitions": "files,column_stats",
}


def _config(properties: dict[str, str], **changes: str) -> TableConfig:
    changed = properties | {key.replace("__", "."): value for key, value in changes.items()}
    return TableConfig.parse(properties_text({k: v for k, v in changed.items() if v != "-"}), "/lake/trips")


def test_a_version_6_table_is_understood() -> None:
    config = _config(V6)
    assert (config.version, config.timeline_path, config.layout) == (6, ".hoodie", layout_of(6))
    assert config.merge_rule is MergeRule.EVENT_TIME_ORDERING
    assert config.record_key_fields == ("a", "b")
    assert config.partition_fields == ("part", "day")
    assert config.ordering_fields == ("ts",)


def test_a_version_9_table_is_understood() -> None:
    config = _config(V9)
    assert (config.version, config.timeline_path, config.layout) == (9, ".hoodie/timeline", layout_of(9))
    assert config.merge_rule is MergeRule.EVENT_TIME_ORDERING
    assert config.metadata_partitions == ("files", "column_stats")


def test_a_version_8_table_has_version_9s_layout_and_a_payload_beside_its_merge_mode() -> None:
    config = _config(
        V9, hoodie__table__version="8", hoodie__compaction__payload__class="org.x.DefaultHoodieRecordPayload"
    )
    assert (config.version, config.timeline_path, config.layout) == (8, ".hoodie/timeline", layout_of(9))
    assert config.merge_rule is MergeRule.EVENT_TIME_ORDERING
    assert config.reader_rules == (MergeRule.EVENT_TIME_ORDERING,)


@pytest.mark.parametrize(
    ("payload", "rule"),
    [
        ("org.apache.hudi.common.model.OverwriteWithLatestAvroPayload", MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST),
        ("org.apache.hudi.common.model.DefaultHoodieRecordPayload", MergeRule.EVENT_TIME_ORDERING),
        ("-", MergeRule.EVENT_TIME_ORDERING),
    ],
)
def test_a_version_6_table_merges_by_its_payload(payload: str, rule: MergeRule) -> None:
    assert _config(V6, hoodie__compaction__payload__class=payload).merge_rule is rule


def test_a_version_6_table_that_hudi_1x_wrote_overwrites_in_commit_order() -> None:
    payload = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    written_by_1x = {"hoodie.table.precombine.field": "-", "hoodie.table.ordering.fields": "ts"}
    config = _config(V6 | written_by_1x, hoodie__compaction__payload__class=payload)
    assert config.merge_rule is MergeRule.COMMIT_TIME_ORDERING
    assert config.reader_rules == (MergeRule.COMMIT_TIME_ORDERING,)


def test_hudi_0x_reads_the_version_6_tables_that_it_wrote_by_rules_of_its_own() -> None:
    assert _config(V6).reader_rules[1:] in (
        (MergeRule.HUDI_0X_DEFAULT,),
        (MergeRule.COMMIT_TIME_ORDERING,),
    )
    assert _config(V9).reader_rules == (MergeRule.EVENT_TIME_ORDERING,)


def test_a_table_without_an_ordering_field_merges_by_commit_time() -> None:
    bare = {"hoodie.compaction.payload.class": "-", "hoodie.table.precombine.field": "-"}
    assert _config(V6 | bare).merge_rule is MergeRule.COMMIT_TIME_ORDERING


def test_a_field_of_a_record_orders_where_all_readers_find_it() -> None:
    """Hudi 0.15 orders log records by commit then, and its compactions by the field."""
    assert _config(V9, hoodie__table__ordering__fields="a.b,ts").ordering_fields == ("a.b", "ts")
    with pytest.raises(
        UnsupportedTableError, match=r"hoodie\.table\.precombine\.field=a\.b: Hudi 0\.x.*upgrade the table"
    ):
        _config(V6, hoodie__table__precombine__field="a.b")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "-"])
def test_no_merge_of_a_copy_on_write_table_is_refused_as_its_readers_merge_nothing(kind: str) -> None:
    """Hudi takes a table without a type for copy-on-write, too."""
    changes = {"hoodie.table.type": kind, "hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.property.x": "1"}
    config = _config(V9 | changes)
    assert config.is_copy_on_write
    assert config.ordering_fields == ("ts",)
    assert not _config(V9).is_copy_on_write


@pytest.mark.parametrize(
    ("version", "cure"),
    [
        ("1", "to_version => 'SIX'"),
        ("5", "to_version => 'SIX'"),
        ("7", "to_version => 'EIGHT'"),
        ("10", "downgrade_table.*to_version => 'NINE'"),
        ("six", "restore hoodie.properties"),
        ("", "restore hoodie.properties"),
    ],
)
def test_another_table_version_is_refused_with_the_way_to_one_that_is_not(version: str, cure: str) -> None:
    with pytest.raises(UnsupportedTableError, match=rf"/lake/trips: hoodie.table.version={version} .*{cure}"):
        _config(V6, hoodie__table__version=version)


def test_a_directory_without_a_version_is_no_table() -> None:
    with pytest.raises(NotAHudiTableError, match="/lake/trips"):
        TableConfig.parse("", "/lake/trips")


REFUSED = {
    ("hoodie.table.type", "MERGE_ON_WRITE"): "is neither COPY_ON_WRITE nor MERGE_ON_READ",
    ("hoodie.table.base.file.format", "ORC"): "base files are ORC",
    ("hoodie.table.base.file.format", "HFILE"): "base files are HFILE",
    ("hoodie.table.base.file.format", "LANCE"): "base files are LANCE",
    ("hoodie.table.multiple.base.file.formats.enable", "true"): "other formats than PARQUET",
    ("hoodie.datasource.write.drop.partition.columns", "true"): "partition columns are left out",
    ("hoodie.populate.meta.fields", "false"): "neither meta fields nor",
    ("hoodie.bootstrap.base.path", "/old"): "keeps columns outside of it, in /old",
    ("hoodie.record.merge.mode", "CUSTOM"): "by code that only its owner's engine has",
    ("hoodie.table.partial.update.mode", "KEEP_VALUES"): "neither IGNORE_DEFAULTS nor FILL_UNAVAILABLE",
    (
        "hoodie.table.partial.update.mode",
        "FILL_UNAVAILABLE",
    ): "unavailable.value, the string that stands for an unavailable value",
    ("hoodie.record.merge.property.hoodie.payload.delete.field", "op"): "delete.marker, which no reader can apply",
    ("hoodie.record.merge.property.hoodie.payload.delete.marker", "D"): "delete.field, which no reader can apply",
    ("hoodie.record.merge.property.com.acme.rate", "3"): "doesn't know what it does to a merge",
}


@pytest.mark.parametrize(("key", "value", "why"), [(*place, why) for place, why in REFUSED.items()])
def test_what_would_change_the_rows_unseen_is_refused_with_the_reason(key: str, value: str, why: str) -> None:
    with pytest.raises(UnsupportedTableError, match="/lake/trips") as refusal:
        _config(V9 | {key: value})
    assert why in str(refusal.value)


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ("PartialUpdateAvroPayload", "fills what is null"),
        ("OverwriteNonDefaultsWithLatestAvroPayload", "keeps the older value"),
        ("debezium.PostgresDebeziumAvroPayload", "fills what Postgres left out"),
        ("debezium.MySqlDebeziumAvroPayload", "orders by places in MySQL's log"),
        ("PartialUpdateAvroPayload", "then upgrade it to version 9"),
        ("ExpressionPayload", "MERGE INTO"),
    ],
)
def test_a_payload_that_does_more_than_order_is_refused_with_what_it_does(payload: str, why: str) -> None:
    with pytest.raises(UnsupportedTableError, match=rf"{payload} .*compact this table with") as refusal:
        _config(V6, hoodie__compaction__payload__class=f"org.apache.hudi.common.model.{payload}")
    assert why in str(refusal.value)


@pytest.mark.parametrize(
    ("payload", "rule", "partial_update", "marker"),
    [
        ("AWSDmsAvroPayload", MergeRule.COMMIT_TIME_ORDERING, None, DeleteMarker("Op", "D")),
        ("OverwriteNonDefaultsWithLatestAvroPayload", MergeRule.COMMIT_TIME_ORDERING, PartialUpdate(None), None),
        ("PartialUpdateAvroPayload", MergeRule.EVENT_TIME_ORDERING, PartialUpdate(None), None),
    ],
)
def test_below_version_9_hudi_1_merges_payloads_by_rules_of_version_9(
    payload: str, rule: MergeRule, partial_update: PartialUpdate | None, marker: DeleteMarker | None
) -> None:
    of_payload = {"hoodie.compaction.payload.class": f"org.apache.hudi.common.model.{payload}"}
    of_6 = V6 | of_payload | {"hoodie.table.precombine.field": "-", "hoodie.table.ordering.fields": "ts"}
    for properties in (V9 | FLINKS | of_payload, of_6):
        config = _config(properties)
        assert config.reader_rules == (config.merge_rule,) == (rule,)
        assert (config.partial_update, config.delete_marker) == (partial_update, marker)
        assert config.orders_deletes == (payload != "PartialUpdateAvroPayload")
    with pytest.raises(UnsupportedTableError, match="compact this table with Hudi itself"):
        _config(V9 | FLINKS | of_payload, hoodie__table__version="9")


def test_the_payload_of_aws_dms_merges_in_tables_of_hudi_0x_as_overwriting_does() -> None:
    config = _config(V6, hoodie__compaction__payload__class="org.apache.hudi.common.model.AWSDmsAvroPayload")
    assert config.merge_rule is MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST
    assert set(config.reader_rules) == {config.merge_rule, MergeRule.COMMIT_TIME_ORDERING}
    assert config.delete_marker == DeleteMarker("Op", "D")


def test_a_merger_of_ones_own_is_refused() -> None:
    strategy = {"hoodie.record.merge.strategy.id": "0b1c"}
    with pytest.raises(UnsupportedTableError, match="0b1c is none of Hudi's own strategies"):
        _config(V6 | strategy)
    with pytest.raises(UnsupportedTableError, match="0b1c is none of Hudi's own strategies"):
        _config(V9 | strategy | {"hoodie.record.merge.mode": "CUSTOM"})


@pytest.mark.parametrize("strategy", ["0b1c", "ce9acb64-bde0-424c-9b91-f6ebba25356d"])
def test_a_strategy_that_contradicts_the_mode_is_refused_on_version_8_as_by_hudi(strategy: str) -> None:
    """Hudi 1.0.2 and 1.1.1 open no such table, and go by the mode on version 9."""
    contradicting = V9 | {"hoodie.record.merge.strategy.id": strategy}
    with pytest.raises(UnsupportedTableError, match=f"{strategy} contradicts .*EVENT_TIME_ORDERING.*eeb8d96f"):
        _config(contradicting | {"hoodie.table.version": "8"})
    assert _config(contradicting).merge_rule is MergeRule.EVENT_TIME_ORDERING


FLINKS = {
    "hoodie.table.version": "8",
    "hoodie.record.merge.mode": "CUSTOM",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.EventTimeAvroPayload",
    "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
}


def test_merge_mode_custom_with_the_payload_of_flink_is_by_event_time() -> None:
    config = _config(V9 | FLINKS)
    assert config.merge_rule is MergeRule.EVENT_TIME_ORDERING
    assert set(config.reader_rules) == {
        MergeRule.EVENT_TIME_ORDERING,
        MergeRule.HUDI_0X_DEFAULT,
        MergeRule.HUDI_1_1_CUSTOM_PAYLOAD,
    }
    assert _config(V9 | FLINKS, hoodie__record__merge__strategy__id="-").merge_rule is MergeRule.EVENT_TIME_ORDERING


@pytest.mark.parametrize(
    "other",
    [
        {"hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"},
        {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
        {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"},
    ],
)
def test_any_other_merge_mode_custom_is_refused(other: dict[str, str]) -> None:
    with pytest.raises(UnsupportedTableError, match="by code that only its owner's engine has"):
        _config(V9 | FLINKS | other)


OWN = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "own"}
MERGER = CustomMerger("lake:Sum", is_associative=True, delete_rule=MergeRule.COMMIT_TIME_ORDERING)


def _with_mergers(properties: dict[str, str]) -> TableConfig:
    return TableConfig.parse(properties_text(properties), "/lake/trips", (("own", MERGER),))


def test_a_merger_of_its_owners_is_followed_if_its_strategy_is_mapped() -> None:
    for version in ("8", "9"):
        config = _with_mergers(V9 | OWN | {"hoodie.table.version": version, "hoodie.compaction.payload.class": "a.Own"})
        assert (config.merger, config.merge_rule, config.reader_rules) == (
            MERGER,
            MergeRule.CUSTOM,
            (MergeRule.CUSTOM,),
        )
    with pytest.raises(UnsupportedTableError, match=r"eventide\.record\.mergers=other=MODULE:CLASS"):
        _with_mergers(V9 | OWN | {"hoodie.record.merge.strategy.id": "other"})
    with pytest.raises(UnsupportedTableError, match="merges whole records"):
        _with_mergers(V9 | OWN | {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"})
    with pytest.raises(UnsupportedTableError, match=r"strategy\.id=own is none of Hudi's own"):
        _with_mergers(V6 | OWN)


def test_a_mapping_changes_nothing_where_the_merge_mode_is_not_custom() -> None:
    for properties in (V9, V9 | {"hoodie.record.merge.strategy.id": "own"}, V9 | FLINKS):
        assert _with_mergers(properties) == _config(properties)


def test_version_9_describes_a_payload_as_ordering_fields_and_a_delete_marker() -> None:
    config = _config(
        V9
        | {
            "hoodie.table.legacy.payload.class": "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload",
            "hoodie.table.ordering.fields": "_event_bin_file,_event_pos",
            "hoodie.record.merge.property.hoodie.payload.delete.field": "_change_operation_type",
            "hoodie.record.merge.property.hoodie.payload.delete.marker": "d",
        }
    )
    assert config.ordering_fields == ("_event_bin_file", "_event_pos")
    assert config.delete_marker == DeleteMarker("_change_operation_type", "d")
    assert config.merge_rule is MergeRule.EVENT_TIME_ORDERING


def test_partial_update_modes_are_those_of_version_9() -> None:
    mode, marker = (
        "hoodie.table.partial.update.mode",
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",
    )
    assert _config(V9).partial_update is None
    assert _config(V9 | {mode: "IGNORE_DEFAULTS"}).partial_update == PartialUpdate(None)
    assert _config(V9 | {mode: "FILL_UNAVAILABLE", marker: "gone"}).partial_update == PartialUpdate("gone")
    with pytest.raises(UnsupportedTableError, match="from table version 9 on, and this is version 8"):
        _config(V9 | {"hoodie.table.version": "8", mode: "IGNORE_DEFAULTS"})


def test_several_ordering_fields_under_the_key_of_hudi_0x_are_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.precombine\.field=ts,seq: Hudi 0\.x"):
        _config(V6, hoodie__table__precombine__field="ts,seq")
    written_by_1x = {"hoodie.table.precombine.field": "-", "hoodie.table.ordering.fields": "ts,seq"}
    assert _config(V6 | written_by_1x).ordering_fields == ("ts", "seq")


def test_a_payload_of_ones_own_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"com\.acme\.MyPayload"):
        _config(V6, hoodie__compaction__payload__class="com.acme.MyPayload")


@pytest.mark.parametrize(
    ("properties", "directory"),
    [
        (V6, ".hoodie/archived"),
        (V6 | {"hoodie.archivelog.folder": "history"}, ".hoodie/history"),
        (V6 | {"hoodie.archivelog.folder": ""}, ".hoodie"),
        (V9, ".hoodie/timeline/history"),
        (V9 | {"hoodie.timeline.path": "line", "hoodie.timeline.history.path": "old"}, ".hoodie/line/old"),
    ],
)
def test_the_archived_timeline_is_in_the_folder_of_the_table_configuration(
    properties: dict[str, str], directory: str
) -> None:
    assert _config(properties).archive_path == directory


WITHOUT_META_FIELDS = {"hoodie.populate.meta.fields": "false"}


@pytest.mark.parametrize(
    "generator",
    [
        {"hoodie.table.keygenerator.type": "COMPLEX"},
        {"hoodie.table.keygenerator.type": "NON_PARTITION"},
        {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomAvroKeyGenerator"},
        {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"},
        {},
    ],
)
def test_without_meta_fields_the_record_key_fields_make_up_the_keys(generator: dict[str, str]) -> None:
    assert _config(V9 | generator).virtual_key_fields == ()
    config = _config(V9 | {"hoodie.table.recordkey.fields": "a,b"} | WITHOUT_META_FIELDS | generator)
    assert config.virtual_key_fields == ("a", "b")


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"hoodie.table.keygenerator.type": "COMPLEX", "hoodie.table.recordkey.fields": "a"}, "is unknown"),
        (
            {"hoodie.table.keygenerator.class": "com.example.Ours", "hoodie.table.recordkey.fields": "a"},
            r"com\.example",
        ),
    ],
)
def test_without_meta_fields_keys_of_uncertain_form_are_refused(properties: dict[str, str], why: str) -> None:
    with pytest.raises(UnsupportedTableError, match=why):
        _config(V9 | WITHOUT_META_FIELDS | properties)
