"""Which compactions of a table with change data capture write change logs."""

import pytest

from eventide_core.action.compaction.change_capture import writes_change_logs
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.records.supplemental_logging import SupplementalLogging
from eventide_core.table.settings.table_config import TableConfig

T = "20261122000000000"
PROPERTIES = (
    "hoodie.table.version=9\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.recordkey.fields=id\n"
    "hoodie.record.merge.mode=COMMIT_TIME_ORDERING\n"
)
SPARK, BUCKET, FLINK = (
    "3dbd7353-15e0-4654-a7b5-ca8054e14c1a-0",
    "00000001-2cec-4351-920d-d6c3417dc4f3-0",
    "3dbd7353-15e0-4654-a7b5-ca8054e14c1a",
)


def config(**more: str) -> TableConfig:
    lines = "".join(f"{key.replace('__', '.')}={value}\n" for key, value in more.items())
    return TableConfig.parse(PROPERTIES + lines, "/t")


def one(file_id: str, *, has_base: bool = True) -> FileSlice:
    base = BaseFile(BaseFileName(file_id, "0-1-0", T), f"p/{file_id}.parquet", 1) if has_base else None
    return FileSlice("p", file_id, T, base, (LogFile(LogFileName(file_id, T, 1, "0-1-0"), "p/log", 1),))


@pytest.mark.parametrize(
    ("index_type", "file_slice", "is_logged"),
    [
        (None, one(SPARK), False),
        (None, one(SPARK, has_base=False), True),
        (None, one(BUCKET), True),
        (None, one(FLINK), True),
        ("SIMPLE", one(SPARK, has_base=False), False),
        ("bucket", one(SPARK), True),
        ("FLINK_STATE", one(SPARK), True),
    ],
)
def test_where_inserts_are_logs_changes_may_be_read_from_compactions(
    index_type: str | None, file_slice: FileSlice, *, is_logged: bool
) -> None:
    assert not writes_change_logs(config(), index_type, [file_slice])
    captures = config(hoodie__table__cdc__enabled="true")
    assert writes_change_logs(captures, index_type, [file_slice]) == is_logged


@pytest.mark.parametrize("text", ["data_before", "DATA_BEFORE"])
def test_the_mode_is_read_in_either_case(text: str) -> None:
    assert (
        SupplementalLogging.of({"hoodie.table.cdc.supplemental.logging.mode": text}) is SupplementalLogging.DATA_BEFORE
    )
    assert SupplementalLogging.of({}) is SupplementalLogging.DATA_BEFORE_AFTER


def test_an_unknown_mode_is_refused_where_it_counts() -> None:
    captures = config(hoodie__table__cdc__enabled="true", hoodie__table__cdc__supplemental__logging__mode="all")
    assert not writes_change_logs(captures, None, [one(SPARK)])
    with pytest.raises(
        UnsupportedTableError, match=r"supplemental\.logging\.mode=ALL in hoodie\.properties is not one of"
    ):
        writes_change_logs(captures, None, [one(BUCKET)])
