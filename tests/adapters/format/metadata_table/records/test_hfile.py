"""HFiles read and written: Hudi's own, ours in both styles, and torn ones."""

import json
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.metadata_table.records.hfile import HFile
from eventide_adapters.format.metadata_table.records.hfile_writer import HFileStyle, encode_hfile
from eventide_core.errors import CorruptLogBlockError, EventideError, UnsupportedTableError
from eventide_core.table.files.log_block import BlockType, LogBlock, read_blocks
from eventide_core.table.schema.avro_schema import AvroSchema
from support.pasts import golden

SCHEMA = AvroSchema.of('{"type":"string"}')
FUZZED = 2000

entries_by_key = st.dictionaries(st.binary(min_size=1, max_size=60), st.binary(max_size=200), min_size=1, max_size=60)


def opened(data: bytes) -> HFile:
    return HFile(lambda offset, length: data[offset : offset + length], len(data), CorruptLogBlockError)


def hudis_own(name: str, directory: Path) -> Iterator[tuple[str, bytes]]:
    """Every HFile in a golden table's metadata table: base files, and the contents of HFILE blocks."""
    table = golden.unpack(name, directory)
    for path in sorted(table.glob(".hoodie/metadata/files/*")):
        data = path.read_bytes()
        if path.suffix == ".hfile":
            yield path.name, data
        elif ".log." in path.name and path.suffix != ".crc":
            for block in log_blocks(path.name, data):
                if block.block_type is BlockType.HFILE_DATA:
                    yield path.name, data[block.content_offset : block.content_offset + block.content_length]


def log_blocks(name: str, data: bytes) -> Iterator[LogBlock]:
    return read_blocks(lambda offset, length: data[offset : offset + length], len(data), name, is_strict=True)


@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_hfiles_of_hudi_are_read(name: str, tmp_path: Path) -> None:
    count = 0
    for where, data in hudis_own(name, tmp_path):
        keys = [key.decode() for key, _ in opened(data).entries()]
        if where.endswith(".hfile"):
            assert keys == ["__all_partitions__"]
        else:
            assert set(keys) <= {"__all_partitions__", "part=a", "part=b", "part=c"}
            assert len(keys) >= 3
        assert keys == sorted(keys)
        schema = json.loads(opened(data).info()["schema"])
        assert schema["name"] == "HoodieMetadataRecord"
        count += 1
    assert count == 10


@pytest.mark.parametrize("name", ["v6_mdt", "v9_mdt"])
def test_our_hfile_has_the_metadata_that_hudi_writes(name: str, tmp_path: Path) -> None:
    """But for the time of creation, and (version 6) the sums that HBase makes of each block."""
    style = HFileStyle.HBASE if name.startswith("v6") else HFileStyle.NATIVE
    for where, data in hudis_own(name, tmp_path):
        if where.endswith(".hfile"):
            continue
        theirs = opened(data)
        ours = encode_hfile(list(theirs.entries()), AvroSchema.of(theirs.info()["schema"].decode()), style)
        info = {key: value for key, value in theirs.info().items() if key != "hfile.CREATE_TIME_TS"}
        assert {key: value for key, value in opened(ours).info().items() if key in info} == info
        assert blocks(ours) == blocks(data)
        assert ours[-4:] == data[-4:]


def blocks(data: bytes) -> list[tuple[bytes, bytes]]:
    """Magic and content of each block but the file info, found one after the other."""
    found: list[tuple[bytes, bytes]] = []
    offset = 0
    while data[offset : offset + 8] != b'TRABLK"$':
        magic = data[offset : offset + 8]
        on_disk, _, _, _, _, end = struct.unpack_from(">iiqbii", data, offset + 8)
        content = zlib.decompress(data[offset + 33 : offset + end], 31)
        if magic == b"IDXROOT2" and content:  # where blocks lie differs with how well they compress
            content = content[12:]
        if magic != b"FILEINF2":
            found.append((magic, content))
        offset += 33 + on_disk
    return found


@given(entries_by_key, st.sampled_from(HFileStyle), st.integers(1, 2000))
def test_an_hfile_reads_back(pairs: dict[bytes, bytes], style: HFileStyle, block_bytes: int) -> None:
    entries = sorted(pairs.items())
    data = encode_hfile(entries, SCHEMA, style, block_bytes=block_bytes)
    assert list(opened(data).entries()) == entries
    assert opened(data).info()["schema"] == SCHEMA.text.encode()


@given(entries_by_key, st.data())
def test_a_look_up_finds_the_keys_there_are(pairs: dict[bytes, bytes], draw: st.DataObject) -> None:
    wanted = draw.draw(st.sets(st.sampled_from(sorted(pairs)) | st.binary(max_size=10)))
    data = encode_hfile(sorted(pairs.items()), SCHEMA, HFileStyle.NATIVE, block_bytes=100)
    assert dict(opened(data).entries(wanted)) == {key: pairs[key] for key in wanted & pairs.keys()}


def test_a_look_up_reads_only_the_blocks_of_its_keys() -> None:
    entries = [(f"k{number:05d}".encode(), bytes(500)) for number in range(1000)]
    data = encode_hfile(entries, SCHEMA, HFileStyle.NATIVE, block_bytes=2000)
    read: list[int] = []

    def counting(offset: int, length: int) -> bytes:
        read.append(length)
        return data[offset : offset + length]

    found = list(HFile(counting, len(data), CorruptLogBlockError).entries({b"k00500"}))
    assert found == [(b"k00500", bytes(500))]
    assert sum(read) < len(data) / 2


def test_an_index_of_several_levels_is_passed_over() -> None:
    """HBase writes the lower levels between the data blocks; such files are read from the first block to the last."""
    entries = [(f"k{number:05d}".encode(), bytes(50)) for number in range(100)]
    data = bytearray(encode_hfile(entries, SCHEMA, HFileStyle.HBASE, block_bytes=1000))
    trailer = data.rindex(b'TRABLK"$')
    levels = data.index(b"\x40\x01", trailer)  # field 8 of the trailer: 1 level
    data[levels + 1] = 2
    inner = data.index(b"DATABLK*", 1)
    data[inner : inner + 8] = b"IDXLEAF2"
    found = list(opened(bytes(data)).entries({b"k00099", b"k00000"}))
    assert [key for key, _ in found] == [b"k00000", b"k00099"]
    assert 0 < len(list(opened(bytes(data)).entries())) < 100


def test_other_compressions_are_refused() -> None:
    data = bytearray(encode_hfile([(b"k", b"v")], SCHEMA, HFileStyle.NATIVE))
    codec = data.index(b"\x60\x01", data.rindex(b'TRABLK"$'))  # field 12 of the trailer: gzip
    data[codec + 1] = 3
    with pytest.raises(UnsupportedTableError, match="compression 3"):
        opened(bytes(data))


def test_torn_hfiles_are_named_as_such(tmp_path: Path) -> None:
    """Bytes changed or cut off anywhere: either what was written is read, or a typed error says that it is torn."""
    chance = random.Random(20261121)
    originals = [data for name in ("v6_mdt", "v9_mdt") for _, data in hudis_own(name, tmp_path / name)]
    torn = 0
    for _ in range(FUZZED):
        data = bytearray(chance.choice(originals))
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        try:
            file = opened(bytes(data))
            list(file.entries())
            file.info()
        except EventideError:
            torn += 1
    assert torn > FUZZED / 4


def test_a_file_that_is_too_short_is_no_hfile() -> None:
    with pytest.raises(CorruptLogBlockError, match="not an HFile"):
        opened(b"")
    with pytest.raises(CorruptLogBlockError, match="trailer"):
        opened(bytes(5000))
