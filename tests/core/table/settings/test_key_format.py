"""What a table's properties say of its keys and partition paths."""

import pytest

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.settings.key_format import KeyFormat, TimeKind
from eventide_core.table.settings.table_config import TableConfig

TIMES = {"keygen.timebased.timestamp.type": "UNIX_TIMESTAMP", "keygen.timebased.output.dateformat": "yyyy-MM"}


def keys(partition: str = "region", record_key: str = "id", version: str = "9", **more: str) -> KeyFormat:
    said = {"table.version": version, "table.type": "MERGE_ON_READ", "table.recordkey.fields": record_key}
    said |= {"table.partition.fields": partition, **more}
    return KeyFormat.of(TableConfig.parse("\n".join(f"hoodie.{key}={value}" for key, value in said.items()), "t"), "t")


def test_a_custom_key_generator_states_for_each_field_whether_it_is_a_time() -> None:
    key_format = keys("region\\:SIMPLE,at\\:TIMESTAMP", **{"table.keygenerator.type": "CUSTOM"}, **TIMES)
    assert (key_format.partition_fields, key_format.time_fields) == (("region", "at"), ("at",))
    assert key_format.partition_time is not None
    assert key_format.partition_time.kind is TimeKind.SECONDS
    assert not key_format.names_key_fields
    assert keys("region:simple", **{"table.keygenerator.class": "a.b.CustomKeyGenerator"}).time_fields == ()
    assert keys("region:simple", "id,kind", **{"table.keygenerator.type": "CUSTOM_AVRO"}).names_key_fields


def test_a_custom_key_generator_that_does_not_say_its_kinds_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"partition field 'region' is of kind \(none\)"):
        keys(
            "region,at:TIMESTAMP", **{"table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}, **TIMES
        )


@pytest.mark.parametrize("generator", ["USER_PROVIDED", "HOODIE_TABLE_METADATA", "UUID"])
def test_a_key_generator_that_is_not_known_is_refused(generator: str) -> None:
    with pytest.raises(UnsupportedTableError, match=f"key generator {generator} is not one of"):
        keys(**{"table.keygenerator.type": generator})


def test_a_time_by_an_unknown_type_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"TimestampBasedKeyGenerator with .*type=SCALAR"):
        keys(**{"table.keygenerator.type": "TIMESTAMP", **TIMES, "keygen.timebased.timestamp.type": "SCALAR"})


def test_what_a_table_does_not_say_of_its_times_is_taken_from_the_options() -> None:
    said = {"hoodie.table.version": "6", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.recordkey.fields": "id"}
    said |= {"hoodie.table.partition.fields": "at", "hoodie.keygen.timebased.output.dateformat": "yyyy-MM"}
    said["hoodie.table.keygenerator.class"] = "org.apache.hudi.keygen.TimestampBasedKeyGenerator"
    config = TableConfig.parse("\n".join(f"{key}={value}" for key, value in said.items()), "t")
    with pytest.raises(UnsupportedTableError, match=r"type=None .* as options"):
        KeyFormat.of(config, "t")
    options = {"hoodie.keygen.timebased.timestamp.type": "DATE_STRING"}
    options |= {
        "hoodie.keygen.timebased.input.dateformat": "dd.MM.yyyy",
        "hoodie.keygen.timebased.output.dateformat": "dd",
    }
    time = KeyFormat.of(config, "t", times=options).partition_time
    assert time is not None
    assert (time.kind, time.input_format, time.output_format) == (TimeKind.TEXT, "dd.MM.yyyy", "yyyy-MM")


def test_one_field_of_a_complex_key_before_version_9_has_no_certain_form() -> None:
    assert keys(**{"table.keygenerator.type": "COMPLEX"}).names_key_fields
    with pytest.raises(UnsupportedTableError, match=r"complex\.keygen\.new\.encoding"):
        keys(version="8", **{"table.keygenerator.type": "COMPLEX"})


@pytest.mark.parametrize(
    ("said", "zone"),
    [
        ("GMT+8:00", "+08:00"),
        ("GMT+08:00", "+08:00"),
        ("GMT-8", "-08:00"),
        ("UTC+05:30", "+05:30"),
        ("GMT+0530", "+05:30"),
        ("+08:00", "+08:00"),
        ("UTC", "UTC"),
        ("Asia/Shanghai", "Asia/Shanghai"),
    ],
)
def test_a_zone_may_be_one_of_javas_offsets(said: str, zone: str) -> None:
    times = {**TIMES, "keygen.timebased.timezone": said.replace(":", "\\:")}
    partition_time = keys(**{"table.keygenerator.type": "TIMESTAMP"}, **times).partition_time
    assert partition_time is not None
    assert partition_time.zone == zone
