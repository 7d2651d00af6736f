"""Options of Hudi's that eventide doesn't honor: refused, unless their value changes nothing."""

import pytest

from eventide_core.action.write.refused_options import (
    OF_THE_TABLE,
    REFUSED,
    REFUSED_FOR_QUERIES,
    refuse_for_write,
    refuse_unhonored,
)
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.table.records.custom_merger import CustomMerger
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.settings.table_config import TableConfig

MODEL = "org.apache.hudi.common.model"
SETTINGS = {
    "hoodie.table.version": "9",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.recordkey.fields": "id,day",
    "hoodie.table.partition.fields": "part",
    "hoodie.table.keygenerator.type": "COMPLEX",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
}
CUSTOM = {
    "hoodie.record.merge.mode": "CUSTOM",
    "hoodie.record.merge.strategy.id": "11111111-2222-3333-4444-555555555555",
}


def config(**changed: str) -> TableConfig:
    lines = {**SETTINGS, **changed}
    return TableConfig.parse("\n".join(f"{key}={value}" for key, value in lines.items()), "t")


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_an_option_that_no_write_honors_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError, match=f"^option {key}='com.acme.Own': .*omit it"):
        refuse_for_write(Options({key: "com.acme.Own"}), config(), "t")


@pytest.mark.parametrize("key", sorted(REFUSED_FOR_QUERIES))
def test_an_option_that_no_query_honors_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigError, match=f"^option {key}='other'"):
        refuse_unhonored(Options({key: "other"}), REFUSED_FOR_QUERIES)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.populate.meta.fields", "TRUE"),
        ("hoodie.bucket.index.partition.expressions", " "),
        ("hoodie.write.merge.handle.class", "org.apache.hudi.io.FileGroupReaderBasedMergeHandle"),
        ("hoodie.datasource.write.record.merger.impls", f"{MODEL}.HoodieAvroRecordMerger, {MODEL}.OtherMerger"),
        ("hoodie.bucket.index.query.pruning", "false"),  # it changes no row
        ("hoodie.some.option.of.hudi.1.3", "any"),
    ],
)
def test_an_option_that_changes_no_row_is_accepted(key: str, value: str) -> None:
    refuse_for_write(Options({key: value}), config(), "t")


def test_hudis_classes_do_not_let_another_one_through() -> None:
    impls = "hoodie.datasource.write.record.merger.impls"
    with pytest.raises(ConfigError, match=impls):
        refuse_for_write(Options({impls: f"{MODEL}.HoodieAvroRecordMerger,com.acme.Own"}), config(), "t")


SAME = {
    "hoodie.table.recordkey.fields": "id, day",
    "hoodie.datasource.write.recordkey.field": "id,day",
    "hoodie.table.partition.fields": "part",
    "hoodie.datasource.write.partitionpath.field": "part:SIMPLE",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.precombine.field": "ts",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.payload.ordering.field": "ts",
    "hoodie.table.keygenerator.type": "COMPLEX",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexAvroKeyGenerator",
    "hoodie.datasource.write.keygenerator.type": "COMPLEX",
    "hoodie.datasource.write.hive_style_partitioning": "True",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.datasource.write.slash.separated.date.partitioning": "false",
    "hoodie.table.partial.update.mode": "NONE",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.write.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.datasource.write.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.compaction.payload.class": f"{MODEL}.DefaultHoodieRecordPayload",
    "hoodie.table.legacy.payload.class": f"{MODEL}.EventTimeAvroPayload",
    "hoodie.datasource.write.payload.class": f"{MODEL}.DefaultHoodieRecordPayload",
}
OTHER = {
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.datasource.write.slash.separated.date.partitioning": "true",
    "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.datasource.write.payload.class": f"{MODEL}.OverwriteWithLatestAvroPayload",
}


def test_each_option_that_names_a_setting_of_the_table_is_among_these() -> None:
    assert {key for setting in OF_THE_TABLE for key in setting.keys} == set(SAME)


@pytest.mark.parametrize(("key", "value"), SAME.items())
def test_an_option_that_says_what_the_table_says_is_accepted(key: str, value: str) -> None:
    refuse_for_write(Options({key: value}), config(), "t")


@pytest.mark.parametrize("key", sorted(SAME))
def test_an_option_that_contradicts_the_table_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=f"^option {key}=.* the table t say otherwise"):
        refuse_for_write(Options({key: OTHER.get(key, "other")}), config(), "t")


def test_a_payload_of_the_tables_own_is_not_its_modes_payload() -> None:
    filling = config(
        **{
            "hoodie.table.legacy.payload.class": f"{MODEL}.PartialUpdateAvroPayload",
            "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS",
        }
    )
    key = "hoodie.datasource.write.payload.class"
    refuse_for_write(Options({key: f"{MODEL}.PartialUpdateAvroPayload"}), filling, "t")
    with pytest.raises(ConfigError, match=key):
        refuse_for_write(Options({key: f"{MODEL}.DefaultHoodieRecordPayload"}), filling, "t")


def test_the_payload_of_a_version_6_table_has_its_strategy_and_mode() -> None:
    old = TableConfig.parse(
        f"hoodie.table.version=6\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.recordkey.fields=id\n"
        f"hoodie.table.precombine.field=ts\nhoodie.compaction.payload.class={MODEL}.OverwriteWithLatestAvroPayload\n"
        "hoodie.compaction.record.merger.strategy=eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        "t",
    )
    for key, value in {
        "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.datasource.write.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        "hoodie.datasource.write.payload.class": f"{MODEL}.OverwriteWithLatestAvroPayload",
    }.items():
        refuse_for_write(Options({key: value}), old, "t")


def test_a_merger_that_a_class_of_python_stands_for_may_be_named() -> None:
    lines = "\n".join(f"{key}={value}" for key, value in {**SETTINGS, **CUSTOM}.items())
    merger = CustomMerger("a:B", is_associative=True, delete_rule=MergeRule.COMMIT_TIME_ORDERING)
    mapped = TableConfig.parse(lines, "t", ((CUSTOM["hoodie.record.merge.strategy.id"], merger),))
    key = "hoodie.write.record.merge.custom.implementation.classes"
    refuse_for_write(Options({key: "com.acme.Merger"}), mapped, "t")
