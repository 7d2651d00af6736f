"""By which index a table is written."""

import pytest

from eventide_core.action.write.index import Index, IndexType, choose_index
from eventide_core.config import Options
from eventide_core.errors import ConfigError, UnsupportedTableError
from eventide_core.table.settings.table_config import TableConfig

BUCKET_IDS = ["00000000-aaaa-4000-8000-000000000000-0", "00000001-aaaa-4000-8000-000000000000-0"]
OTHER_ID = "a252ffff-a252-4312-8a35-05f9acef09e9-0"


def config(**more: str) -> TableConfig:
    lines = ["hoodie.table.version=9", "hoodie.table.type=MERGE_ON_READ", "hoodie.table.recordkey.fields=id,day"]
    lines += [f"hoodie.{key.replace('_', '.')}={value}" for key, value in more.items()]
    return TableConfig.parse("\n".join(lines), "t")


def chosen(table: TableConfig, file_ids: list[str], **options: str) -> Index:
    return choose_index(
        table, Options({f"hoodie.{key.replace('_', '.')}": value for key, value in options.items()}), file_ids
    )


def test_the_table_configuration_has_its_index_and_buckets() -> None:
    table = config(index_type="BUCKET", bucket_index_num_buckets="2")
    assert chosen(table, BUCKET_IDS) == Index(IndexType.BUCKET, 2, ("id", "day"))


def test_buckets_may_hash_some_of_the_key_fields() -> None:
    table = config(index_type="BUCKET", bucket_index_num_buckets="2", bucket_index_hash_field="day")
    assert chosen(table, BUCKET_IDS).hash_fields == ("day",)


def test_file_ids_tell_buckets_but_not_how_many() -> None:
    assert chosen(config(), BUCKET_IDS, bucket_index_num_buckets="2").type is IndexType.BUCKET
    with pytest.raises(ConfigError, match="does not state its number of buckets"):
        chosen(config(), BUCKET_IDS)


def test_a_table_without_an_index_setting_is_joined() -> None:
    assert chosen(config(), [OTHER_ID]) == Index(IndexType.SIMPLE)
    assert chosen(config(), []) == Index(IndexType.SIMPLE)
    assert chosen(config(), [OTHER_ID], index_type="bloom") == Index(IndexType.BLOOM)


def test_a_table_with_a_record_index_is_joined_by_keys_that_are_one_in_the_table() -> None:
    table = config(table_metadata_partitions="files,record_index")
    assert chosen(table, [OTHER_ID]) == Index(IndexType.RECORD_INDEX)
    assert chosen(table, BUCKET_IDS, bucket_index_num_buckets="2").type is IndexType.BUCKET


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("GLOBAL_SIMPLE", {}, Index(IndexType.GLOBAL_SIMPLE, moves_keys=True)),
        ("GLOBAL_SIMPLE", {"simple_index_update_partition_path": "false"}, Index(IndexType.GLOBAL_SIMPLE)),
        (
            "GLOBAL_BLOOM",
            {"simple_index_update_partition_path": "false"},
            Index(IndexType.GLOBAL_BLOOM, moves_keys=True),
        ),
        ("GLOBAL_RECORD_LEVEL_INDEX", {}, Index(IndexType.RECORD_INDEX)),
        (
            "RECORD_INDEX",
            {"record_index_update_partition_path": "true"},
            Index(IndexType.RECORD_INDEX, moves_keys=True),
        ),
        ("RECORD_LEVEL_INDEX", {}, Index(IndexType.RECORD_LEVEL_INDEX)),
    ],
)
def test_global_indexes_move_keys_as_hudi_has_it(kind: str, options: dict[str, str], expected: Index) -> None:
    index = chosen(config(), [OTHER_ID], index_type=kind, **options)
    assert index == expected
    assert index.is_global is (kind != "RECORD_LEVEL_INDEX")


@pytest.mark.parametrize("kind", ["INMEMORY", "CONSISTENT_HASHING"])
def test_an_index_that_eventide_does_not_have_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedTableError, match=kind):
        chosen(config(), [OTHER_ID], index_type=kind)


def test_a_file_group_of_flinks_state_is_refused_unless_the_index_is_given() -> None:
    flink = OTHER_ID.removesuffix("-0")
    with pytest.raises(UnsupportedTableError, match=f"{flink} is of Flink's state index"):
        chosen(config(), [OTHER_ID, flink])
    assert chosen(config(), [flink], index_type="SIMPLE").type is IndexType.SIMPLE


def test_growing_buckets_are_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="CONSISTENT"):
        chosen(
            config(),
            BUCKET_IDS,
            index_type="BUCKET",
            bucket_index_num_buckets="2",
            index_bucket_engine="CONSISTENT_HASHING",
        )


@pytest.mark.parametrize(
    ("ids", "options", "said"),
    [
        (BUCKET_IDS, {"bucket_index_num_buckets": "3"}, "the table was created with '2'"),
        (BUCKET_IDS, {"index_type": "SIMPLE"}, "the table was created with 'BUCKET'"),
        ([BUCKET_IDS[0].replace("00000000", "00000002")], {}, "a file group of bucket 2"),
        ([OTHER_ID], {}, "a file group without a bucket"),
    ],
)
def test_what_contradicts_the_table_is_refused(ids: list[str], options: dict[str, str], said: str) -> None:
    table = config(index_type="BUCKET", bucket_index_num_buckets="2")
    with pytest.raises(ConfigError, match=said):
        chosen(table, ids, **options)


def test_a_hash_field_must_be_of_the_key() -> None:
    with pytest.raises(ConfigError, match="'name' is not a record key field"):
        chosen(config(), BUCKET_IDS, bucket_index_num_buckets="2", bucket_index_hash_field="name")
