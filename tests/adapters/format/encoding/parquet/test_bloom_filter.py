"""Bloom filters come out as Hudi 1.1.1 wrote them, bit for bit."""

import base64
from dataclasses import replace

import pyarrow as pa
import pytest

from eventide_adapters.format.encoding.parquet.bloom_filter import (
    DEFAULT_PARAMETERS,
    BloomFilter,
    BloomFilterBuilder,
    BloomParameters,
)
from eventide_core.errors import CorruptBaseFileError

# 40 keys of 4 to 11 bytes, some of them beyond 7 bits.
KEYS = [f"k{'x' * (i % 7)}{i}é" for i in range(40)]
# What Hudi wrote for them with hoodie.index.bloom.num_entries=100 and .fpp=0.001, type SIMPLE,
WRITTEN_SIMPLE = (
    "/////wAAAAoBAAAFngQAwAIAJVLwDcCAwJoiBIQQpgAQBIUCAdg3AAoQahkWA2kMADFAgc5AAqQpAACLgAABAQt0SMiBSJDEIQFCIqLJESpSlQAC5k"
    "aEIgDIPCbBnOBgKFEogwJAA8AAACoCAAYQBEJCgsBkHuhCAIC4AiAIC4BABACABAIQCgiKAEACXNFIK4BBCRJhJyADgkAZVBkAQBgAEECBLCJCggBw"
    "UIWAwJAVAKAQYCIQABSS6eICDBJCAA=="
)
# and with 10, 0.001, type DYNAMIC_V0 and hoodie.bloom.index.filter.dynamic.max.entries=25: rows full at the 30th key.
WRITTEN_DYNAMIC = (
    "/////wAAAAoBAAAAkAAAAAoAAAAUAAAAA/////8AAAAKAQAAAJDynKrvZrbnf7zf6mejvb6p/nf/////AAAACgEAAACQJq+o67eb5uK+E8+zHv7Dkx"
    "vf/////wAAAAoBAAAAkN2zmeDpmMXnsd9Fpu9lRvwupA=="
)
LAYOUTS = {
    "simple": (BloomParameters.for_entries(100, 0.001, "SIMPLE"), WRITTEN_SIMPLE),
    "dynamic": (replace(BloomParameters.for_entries(10, 0.001), max_entries=25), WRITTEN_DYNAMIC),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("batch_rows", [1, 7, 40])
def test_a_filter_has_the_bytes_that_hudi_writes(layout: str, batch_rows: int) -> None:
    parameters, written = LAYOUTS[layout]
    builder = BloomFilterBuilder(parameters)
    keys = pa.array(KEYS)
    for start in range(0, len(keys), batch_rows):
        builder.add(keys.slice(start, batch_rows))
    assert builder.text().decode() == written


def test_one_long_key_hashes_as_beside_many_and_stays_as_it_is() -> None:
    texts = [f"{number:05d}" * 999 for number in range(20)]
    keys = pa.array(texts)
    together, alone = (BloomFilterBuilder(DEFAULT_PARAMETERS) for _ in range(2))
    together.add(keys)
    for row in range(len(keys)):
        alone.add(keys.slice(row, 1))
    assert alone.text() == together.text()
    assert keys.to_pylist() == texts


@pytest.mark.parametrize("earlier", [0, 1, 10, 15, 40])
def test_an_extended_filter_equals_one_built_from_all_keys(earlier: int) -> None:
    keys, whole = pa.array(KEYS), BloomFilterBuilder(BloomParameters.for_entries(10, 0.001))
    whole.add(keys.slice(0, earlier))
    bloom = BloomFilter(whole.type_code, whole.text(), "part=a/base.parquet")
    assert bloom.key_count == earlier
    extending = BloomFilterBuilder.extending(bloom)
    extending.add(keys.slice(earlier))
    whole.add(keys.slice(earlier))
    assert extending.text() == whole.text()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_existing_filter_states_its_layout(layout: str) -> None:
    parameters, written = LAYOUTS[layout]
    parsed = BloomFilter(parameters.type_code, written, "part=a/base.parquet").parameters
    assert (parsed.hash_count, parsed.bit_count) == (parameters.hash_count, parameters.bit_count)
    assert parsed.row_entries == (10 if layout == "dynamic" else 0)


def test_the_default_layout_is_that_of_hudis_defaults() -> None:
    assert (DEFAULT_PARAMETERS.hash_count, DEFAULT_PARAMETERS.bit_count) == (30, 2_587_966)


def test_a_filter_without_keys_has_one_empty_row() -> None:
    text = BloomFilterBuilder(BloomParameters.for_entries(10, 0.001)).text()
    data = base64.b64decode(text)
    assert data[13:25] == bytes([0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1])
    assert len(data) == 25 + 13 + 18
    assert not any(data[38:])


@pytest.mark.parametrize(
    ("type_code", "text"),
    [
        ("DYNAMIC_V0", "no base64!"),
        ("DYNAMIC_V0", ""),
        ("DYNAMIC_V0", WRITTEN_DYNAMIC[:20]),
        ("DYNAMIC_V0", WRITTEN_DYNAMIC[:-4]),
        ("DYNAMIC_V0", WRITTEN_DYNAMIC[:-1]),
        ("DYNAMIC_V0", WRITTEN_DYNAMIC[:-8] + "*" + WRITTEN_DYNAMIC[-7:]),
        ("DYNAMIC_V0", WRITTEN_DYNAMIC[:-8] + "=" + WRITTEN_DYNAMIC[-7:]),
        ("DYNAMIC_V0", base64.b64encode(bytes(40)).decode()),
        ("DYNAMIC_V1", WRITTEN_DYNAMIC),
    ],
)
def test_a_torn_filter_is_refused(type_code: str, text: str) -> None:
    with pytest.raises(CorruptBaseFileError, match=r"part=a/base\.parquet"):
        BloomFilter(type_code, text, "part=a/base.parquet")
