"""By which index writers find keys, as far as it matters to a compaction."""

import pytest

from eventide_core.config import INDEX_TYPE
from eventide_core.service.common.facts.planning import is_base_file_index
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.settings.table_config import TableConfig

SPARK, FLINK = "3dbd7353-15e0-4654-a7b5-ca8054e14c1a-0", "3dbd7353-15e0-4654-a7b5-ca8054e14c1a"
BUCKET, BUCKET_OF_FLINK = "00000001-2cec-4351-920d-d6c3417dc4f3-0", "00000001-2cec-4351-920d-d6c3417dc4f3"


def answer(*file_ids: str, said: str | None = None, of_table: str | None = None) -> bool:
    text = "hoodie.table.version=9\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.recordkey.fields=id\n"
    table = TableConfig.parse(text + ("" if of_table is None else f"{INDEX_TYPE}={of_table}\n"), "/t")
    slices = [FileSlice("p", file_id, "20261122000000000", None, ()) for file_id in file_ids]
    return is_base_file_index(table, slices, said)


@pytest.mark.parametrize(
    ("file_ids", "is_over_base_files"),
    [((SPARK,), True), ((BUCKET, BUCKET_OF_FLINK), False), ((FLINK,), False), ((BUCKET, FLINK, SPARK), True)],
)
def test_file_ids_tell_an_index_that_needs_no_base_files(
    file_ids: tuple[str, ...], *, is_over_base_files: bool
) -> None:
    assert answer(*file_ids) is is_over_base_files


@pytest.mark.parametrize(("index", "is_over_base_files"), [("FLINK_STATE", False), ("bucket", False), ("BLOOM", True)])
def test_a_setting_of_the_user_or_of_the_table_applies(index: str, *, is_over_base_files: bool) -> None:
    for file_id in (SPARK, FLINK):
        assert answer(file_id, said=index) is is_over_base_files
        assert answer(file_id, of_table=index) is is_over_base_files
