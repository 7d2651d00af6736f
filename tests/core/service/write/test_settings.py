"""What a write takes from its options: the values that the reference page names are taken."""

from dataclasses import replace
from typing import Any

import pytest

from eventide_core.action.write.base_file_sizes import BaseFileSizes, fill
from eventide_core.config import (
    COMBINE_BEFORE_INSERT,
    DROP_INSERT_DUPLICATES,
    INSERT_AUTO_SPLIT,
    INSERT_DUPLICATES,
    INSERT_SPLIT_SIZE,
    LOG_BLOCK_EVENT_TIME_BUCKET,
    LOG_BLOCK_FORMAT,
    PARQUET_CODEC,
    PARQUET_MAX_FILE_SIZE,
    RECORD_SIZE_ESTIMATE,
    InsertDuplicates,
    Options,
    ParquetCodec,
)
from eventide_core.service.write.settings import base_file_sizes, combines, insert_duplicates, write_layout
from eventide_core.table.settings.write_shape import LogBlockFormat, WriteLayout, WriteOperation


@pytest.mark.parametrize(
    ("values", "changed"),
    [
        ({LOG_BLOCK_EVENT_TIME_BUCKET: "0"}, {}),
        ({LOG_BLOCK_EVENT_TIME_BUCKET: "1h"}, {"log_block_span_ms": 3_600_000}),
        ({LOG_BLOCK_FORMAT: "Parquet"}, {"log_block_format": LogBlockFormat.PARQUET}),
        ({PARQUET_CODEC: "as-before"}, {}),
        ({PARQUET_CODEC: "zstd"}, {"codec": ParquetCodec.ZSTD}),
    ],
)
def test_a_layout_is_hudis_default_except_for_given_settings(values: dict[str, str], changed: dict[str, Any]) -> None:
    default = WriteLayout(
        log_block_format=LogBlockFormat.AVRO,
        log_block_bytes_max=256 * 1024 * 1024,
        log_file_bytes_max=1024 * 1024 * 1024,
        log_block_span_ms=0,
        codec=ParquetCodec.GZIP,
        bloom_entries=60_000,
        bloom_false_positives=1e-9,
        notes_event_times=True,
        tracks_event_times=True,
    )
    assert write_layout(Options(values)) == replace(default, **changed)


def test_sizes_of_base_files_are_hudis_defaults() -> None:
    assert base_file_sizes(WriteOperation.UPSERT, (), Options({})) == BaseFileSizes(
        bytes_max=120 * 1024 * 1024, small_bytes=100 * 1024 * 1024, small_files_max=1, record_bytes=1024
    )


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ({RECORD_SIZE_ESTIMATE: str(1 << 20)}, [100] * 10),
        ({INSERT_SPLIT_SIZE: "300"}, [1000]),
        ({INSERT_SPLIT_SIZE: "300", INSERT_AUTO_SPLIT: "false"}, [250] * 4),
        ({INSERT_AUTO_SPLIT: "false"}, [1000]),
    ],
)
def test_new_file_groups_get_as_many_records_as_fit_or_as_the_user_sets(
    values: dict[str, str], groups: list[int]
) -> None:
    options = Options({PARQUET_MAX_FILE_SIZE: str(100 << 20), **values})
    sizes = base_file_sizes(WriteOperation.BULK_INSERT, (), options)
    assert [filling.rows for filling in fill(1000, (), sizes)] == groups


@pytest.mark.parametrize(
    ("values", "policy"),
    [
        ({}, InsertDuplicates.NONE),
        ({DROP_INSERT_DUPLICATES: "true"}, InsertDuplicates.DROP),
        ({INSERT_DUPLICATES: "fail"}, InsertDuplicates.FAIL),
        ({INSERT_DUPLICATES: "none", DROP_INSERT_DUPLICATES: "true"}, InsertDuplicates.NONE),
    ],
)
def test_the_policy_of_duplicates_goes_before_its_older_option(
    values: dict[str, str], policy: InsertDuplicates
) -> None:
    assert insert_duplicates(WriteOperation.INSERT, Options(values)) is policy


@pytest.mark.parametrize(
    ("values", "is_combined"),
    [
        ({}, False),
        ({INSERT_DUPLICATES: "drop"}, True),
        ({INSERT_DUPLICATES: "drop", COMBINE_BEFORE_INSERT: "false"}, False),
        ({COMBINE_BEFORE_INSERT: "true"}, True),
    ],
)
def test_an_insert_combines_its_records_where_it_drops_duplicates(values: dict[str, str], is_combined: bool) -> None:
    assert combines(WriteOperation.INSERT, Options(values)) is is_combined
