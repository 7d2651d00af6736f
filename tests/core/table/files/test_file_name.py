"""The names of base files and log files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.table.files.file_name import BaseFileName, LogFileName

T = "20261121060113021"

tokens = st.tuples(*[st.integers(0, 10**6)] * 3).map(lambda t: "-".join(map(str, t)))
instants = st.from_regex(r"[0-9]{14}|[0-9]{17}", fullmatch=True)
file_ids = st.from_regex(r"[0-9a-zA-Zäß-][0-9a-zA-Zäß.-]{0,40}", fullmatch=True)


@given(file_ids, tokens, instants)
def test_a_base_file_name_reads_back(file_id: str, token: str, instant: str) -> None:
    name = BaseFileName(file_id, token, instant)
    assert BaseFileName.parse(str(name)) == name
    assert LogFileName.parse(str(name)) is None


@given(file_ids, instants, st.integers(0, 2**31 - 1), st.just("") | tokens)
def test_a_log_file_name_reads_back(file_id: str, instant: str, version: int, token: str) -> None:
    name = LogFileName(file_id, instant, version, token)
    assert LogFileName.parse(str(name)) == name
    assert BaseFileName.parse(str(name)) is None


@given(st.text() | st.from_regex(r"\.?[\w-]+_\d{17}\.log\.\d+_\d-\d-\d(\.cdc)?\s?"))
def test_a_name_is_taken_only_if_its_parts_give_it_back(name: str) -> None:
    for parsed in (BaseFileName.parse(name), LogFileName.parse(name)):
        assert parsed is None or str(parsed) == name


def test_real_names_are_taken_apart() -> None:
    log = LogFileName.parse(f".00000001-a252-4312-8a35-05f9acef09e9-1_{T}.log.3_1-37-62")
    assert log == LogFileName("00000001-a252-4312-8a35-05f9acef09e9-1", T, 3, "1-37-62")
    base = BaseFileName.parse(f"00000000-0178-48db-ae05-664a3c5be7dc_0-173-309_{T}.parquet")
    assert base == BaseFileName("00000000-0178-48db-ae05-664a3c5be7dc", "0-173-309", T, ".parquet")
    captured = LogFileName.parse(f".f-1_{T}.log.1_0-1-0.cdc")
    assert captured is not None
    assert captured.suffix == ".cdc"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".hoodie_partition_metadata",
        f".f-1_{T}.log.1_0-1-0.crc",
        f"..f-1_{T}.log.1_0-1-0.crc",
        f".f-1_0-1-0_{T}.parquet.crc",
        f".f-1_0-1-0_{T}.parquet",
        f".f-1_{T}.log.1_0-1",
        f".f-1_{T}.log.01_0-1-0",
        f".f-1_{T}.log.{'9' * 5000}",
        f".f-1_{T}.log.1_0-1-0\n",
        f".f-1_{T}.archive.1_0-1-0",
        f".f/1_{T}.log.1_0-1-0",
        f".f\\1_{T}.log.1_0-1-0",
        f".f\x001_{T}.log.1_0-1-0",
        f"._{T}.log.1_0-1-0",
        f"f-1_{T}.log.1_0-1-0",
        f"f-1_0-1-0_{T}.parquet\n",
        f"f-1_0-1-0_{T}",
        f"f-1_0-1_{T}.parquet",
        f"f-1_0-1-0_{T[:-2]}.parquet",
        f"a/f-1_0-1-0_{T}.parquet",
        f"../f-1_0-1-0_{T}.parquet",
        f"f-1_\u0660-1-0_{T}.parquet",
    ],
)
def test_any_other_name_is_no_data_files(name: str) -> None:
    assert BaseFileName.parse(name) is None
    assert LogFileName.parse(name) is None


def test_logs_sort_by_instant_then_version_as_a_number_then_token_as_text() -> None:
    names = [
        f".f_{T}.log.10_0-1-0",
        f".f_{T}.log.2_9-1-0",
        f".f_{T}.log.2_10-1-0",
        f".f_{T}.log.0_00001-0-1",
        f".f_{T}.log.0_00000-0-1",
        ".f_20261121060113020.log.99_0-1-0",
    ]
    parsed = [log for name in names if (log := LogFileName.parse(name)) is not None]
    assert [str(log) for log in sorted(parsed, key=lambda log: log.reader_order)] == [
        names[5],
        names[4],
        names[3],
        names[2],
        names[1],
        names[0],
    ]
