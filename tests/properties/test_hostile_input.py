"""Whatever bytes a table holds: rows or a typed error, never another exception, a large allocation or an endless loop.

Files that real Hudi wrote are changed where it hurts: lengths and counts are replaced by others, bits flip, pieces go, come
twice or elsewhere. Each parser is asked what it is asked in earnest.

EVENTIDE_CAMPAIGN=n tries n times as many, other ones at each run: 10,000 of each parser are EVENTIDE_CAMPAIGN=200.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.progress import NoProgress
from eventide.testing.crash_enumeration import OPTIONS, Bench, pending_plan
from eventide.testing.histories import EPOCH_MS, Layout, Story, put
from eventide.testing.oracle import Order
from eventide_adapters.format.archived_timeline import open_archived_timeline
from eventide_adapters.format.avro_schema import table_fields
from eventide_adapters.format.base_parquet import read_base, read_footer
from eventide_adapters.format.bloom_filter import FOOTER_KEY, SIMPLE, TYPE_FOOTER_KEY, BloomFilter
from eventide_adapters.format.log_blocks import read_headers
from eventide_adapters.format.log_content import ArrowLogContent
from eventide_adapters.format.log_records import iter_log_records
from eventide_adapters.format.metadata_avro import HudiMetadataCodec
from eventide_adapters.format.metadata_table import HudiMetadataTable
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import EventideError
from eventide_core.table.file_name import LogFileName
from eventide_core.table.file_slice import LogFile
from eventide_core.table.log_block import read_blocks
from eventide_core.table.record_order import MergeRule
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter
from eventide_core.table.table_config import TableConfig
from support import golden
from support.reach import reached

CAMPAIGN = int(os.environ.get("EVENTIDE_CAMPAIGN", "1"))
CODEC = HudiMetadataCodec()
OWN = "eventide's own"
SECONDS_MAX = 20
MEGABYTES_MAX = (
    768  # more address space than any of these files, of some kilobytes, is worth; Arrow reserves much of it
)

NUMBERS = (0, 1, -1, 7, 64, 127, 128, 255, 65_536, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**62, -(2**63), 2**63 - 1)
DEEP = "[" * 50_000 + "]" * 50_000
JSON_VALUES = (
    DEEP,
    "null",
    "-1",
    "1e999",
    '"x"',
    "[]",
    "{}",
    "[[[[[[[[[[]]]]]]]]]]",
    "99999999999999999999",
    '"../../../etc/passwd"',
)

Questions = Iterator[Callable[[], object]]
"""What is asked of a file of some table, and answered or refused."""


class TookTooLongError(BaseException):
    """An endless loop, or near to it. No Exception, lest a decoder takes it for torn bytes."""


@pytest.fixture(autouse=True, scope="module")
def limits() -> Iterator[None]:
    """No more memory than a limit, and no more time for one case than another."""

    def give_up(*_: object) -> None:
        raise TookTooLongError

    before = signal.signal(signal.SIGALRM, give_up)
    yield
    signal.signal(signal.SIGALRM, before)


@contextmanager
def bounded() -> Iterator[None]:
    limit = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEGABYTES_MAX * 2**20, limit[1]))
    signal.alarm(SECONDS_MAX)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, limit)


@cache
def files_of(table: str) -> dict[str, bytes]:
    """The files of a golden table, or of one of eventide's own, by path."""
    if table == OWN:
        return own_files()
    with tarfile.open(golden.FOLDER / f"{table}.tar.gz") as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {m.name.removeprefix("./"): archive.extractfile(m).read() for m in members}  # type: ignore[union-attr]


def own_files() -> dict[str, bytes]:
    """A table of eventide's, compacted in part, and cleaned."""
    bench = Bench("hostile", OPTIONS)
    story = Story.begin(Layout(9, Order.EVENT_TIME), bench.storage, bench.clock)
    for number in range(4):
        story.commit((put("k0", 5 + 3 * number, f"of {number}"), put("k1", 6 + 3 * number, f"of {number}")))
    application = bench.process()
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + 10, None, LinkChoice.COPY))
    application.runner.execute(pending_plan(application).instant, NoProgress())
    story.commit((put("k0", 60, "later"),))
    application.cleaner.clean(1)
    return {path: file.data for path, file in bench.storage.dump().items()}


def seeds(*tables: str, ending: str, inside: str = "", least: int = 1) -> list[tuple[str, str]]:
    """The largest and the smallest file of each table whose path ends and begins so."""
    found: list[tuple[str, str]] = []
    for table in tables:
        paths = [p for p, data in files_of(table).items() if p.endswith(ending) and inside in p and len(data) >= least]
        paths = [p for p in paths if not p.rpartition("/")[2].startswith("..") and ".crc" not in p]
        by_size = sorted(paths, key=lambda p: (len(files_of(table)[p]), p))
        found += [(table, path) for path in dict.fromkeys((*by_size[:1], *by_size[-1:]))]
    return found


def logs(*tables: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for table in tables:
        paths = sorted(
            p for p in files_of(table) if LogFileName.parse(p.rpartition("/")[2]) and not p.startswith(".hoodie")
        )
        by_size = sorted(paths, key=lambda p: (len(files_of(table)[p]), p))
        found += [(table, path) for path in dict.fromkeys((by_size[0], by_size[-1]))]
    return found


@cache
def shape_of(table: str) -> RecordShape:
    """What the table's records look like, by its last commit."""
    files = files_of(table)
    config = TableConfig.parse(files[".hoodie/hoodie.properties"].decode(), table)
    commits = [p for p in files if p.startswith(config.timeline_path + "/") and p.endswith("commit")]
    schemas = [CODEC.decode_commit(files[p], p).schema for p in sorted(commits) if files[p]]
    schema = next(s for s in reversed(schemas) if s)
    return RecordShape(schema, MergeRule.EVENT_TIME_ORDERING, config.ordering_fields, config.first_ordering_field)


def in_memory(path: str, data: bytes) -> MemoryStorage:
    storage = MemoryStorage.from_dump("hostile", {})
    storage.put(path, data)
    return storage


def about_log(table: str, path: str, data: bytes) -> Questions:
    storage, shape = in_memory(path, data), shape_of(table)
    name = LogFileName.parse(path.rpartition("/")[2])
    assert name is not None
    logs, blocks = [(path, len(data))], BlockFilter(frozenset(), "9")
    yield lambda: list(iter_log_records(storage, logs, shape, blocks, None, is_strict=True))
    yield lambda: list(iter_log_records(storage, logs, shape, blocks, None, is_strict=False))
    yield lambda: ArrowLogContent(storage).summarize(LogFile(name, path, len(data)), shape)


def about_base_file(table: str, path: str, data: bytes) -> Questions:
    storage = in_memory(path, data)

    def bloom_filter() -> BloomFilter:
        footer = read_footer(storage, path)
        return BloomFilter(footer.get(TYPE_FOOTER_KEY, SIMPLE), footer.get(FOOTER_KEY, ""), path)

    yield lambda: list(read_base(storage, path, table_fields(shape_of(table).schema)))
    yield bloom_filter


def about_commit(_: str, path: str, data: bytes) -> Questions:
    yield lambda: CODEC.decode_commit(data, path)


def about_service(_: str, path: str, data: bytes) -> Questions:
    instant = path.rpartition("/")[2][:17]
    yield lambda: CODEC.decode_clean(data, path)
    yield lambda: CODEC.decode_clean_plan(data, path, instant)
    yield lambda: CODEC.decode_rollback(data, path)
    yield lambda: CODEC.decode_rollback_plan(data, path, instant)
    yield lambda: CODEC.decode_savepoint(data, path)
    yield lambda: CODEC.decode_restore_plan(data, path, instant)


def about_plan(_: str, path: str, data: bytes) -> Questions:
    yield lambda: CODEC.decode_plan(data, path, path.rpartition("/")[2][:17])


def about_properties(table: str, _: str, data: bytes) -> Questions:
    yield lambda: TableConfig.parse(data.decode(errors="replace"), table)


def about_archive(table: str, path: str, data: bytes) -> Questions:
    files = files_of(table)
    config = TableConfig.parse(files[".hoodie/hoodie.properties"].decode(), table)
    storage = in_memory(path, data)
    for other, content in files.items():
        if other.startswith(f"{config.archive_path}/") and other != path:
            storage.put(other, content)
    archive = open_archived_timeline(storage, config)
    yield lambda: [archive.commit(write.requested_time) for write in archive.writes("", "9")]
    yield lambda: archive.find("20261121000000000")


def about_metadata_table(table: str, path: str, data: bytes) -> Questions:
    storage = MemoryStorage.from_dump("hostile", {})
    for other, content in files_of(table).items():
        if other.startswith(".hoodie/") and ".crc" not in other:
            storage.put(other, content)
    storage.put(path, data)
    yield lambda: HudiMetadataTable(storage).read_files()


PARSERS: dict[str, tuple[Callable[[str, str, bytes], Questions], list[tuple[str, str]]]] = {
    "log file": (
        about_log,
        logs("v6_ordered_deletes", "v6_parquet_defpay", "v6_avro_types", "v9_event_ordered_deletes", "v9_grown_nested"),
    ),
    "base file": (about_base_file, seeds("v6_avro_types", "v9_no_deletes", ending=".parquet")),
    "commit": (about_commit, seeds("v6_no_deletes", "v9_no_deletes", ending=".deltacommit")),
    "service": (
        about_service,
        [
            *seeds("v6_rolled_back", "v9_rolled_back", ending=".rollback"),
            *seeds("v6_rolled_back", "v9_rolled_back", ending=".rollback.requested"),
            *seeds(OWN, ending=".clean"),
            *seeds(OWN, ending=".clean.requested"),
            *seeds("v6_restored", "v9_restored", ending=".savepoint"),
        ],
    ),
    "plan": (about_plan, seeds("v6_compacted", "v9_compacted", OWN, OWN, ending=".compaction.requested")),
    "properties": (
        about_properties,
        seeds("v6_no_deletes", "v9_event_bucket", ending="hoodie.properties", inside=".hoodie/h"),
    ),
    "archive of version 6": (about_archive, seeds("v6_archived", ending="", inside=".hoodie/archived/", least=100)),
    "archive of version 9": (about_archive, seeds("v9_archived", ending="", inside="timeline/history/", least=2)),
    "metadata table": (
        about_metadata_table,
        seeds("v6_mdt", "v9_mdt", ending="", inside=".hoodie/metadata/files/", least=500),
    ),
}


def offsets_of(data: bytes) -> tuple[int, ...]:
    """Where lengths and counts stand in a log file, if it is one; else the beginning and the end, where they mostly do."""
    found: list[int] = []
    with suppress(EventideError):
        for block in read_blocks(lambda at, size: data[at : at + size], len(data), "log", is_strict=True):
            begin, end = block.offset, block.end
            inside = range(block.content_offset, min(block.content_offset + 24, end), 4)
            found += [begin, begin + 6, begin + 14, begin + 18, begin + 22, begin + 30, *inside, end - 12, end - 8]
    return tuple(found) or (*range(0, 64, 4), *range(max(0, len(data) - 64), len(data), 4))


Edit = tuple[str, float, int, int]

EDITS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "number", "number", "varint", "cut", "remove", "repeat", "swap", "json"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 63),
        st.integers(0, 10_000),
    ),
    min_size=1,
    max_size=4,
)


def edited(data: bytes, edits: list[Edit]) -> bytes:
    """The bytes after all edits, one after the other."""
    for kind, place, choice, amount in edits:
        if not data:
            return data
        offsets = offsets_of(data) if choice % 2 else ()
        at = offsets[int(place * len(offsets))] if offsets else int(place * len(data))
        at = min(at, len(data) - 1)
        data = _edit(data, kind, at, choice, amount)
    return data


def _edit(data: bytes, kind: str, at: int, choice: int, amount: int) -> bytes:
    number = NUMBERS[choice % len(NUMBERS)]
    match kind:
        case "flip":
            return data[:at] + bytes([data[at] ^ (1 << choice % 8)]) + data[at + 1 :]
        case "number":
            width = (4, 8)[amount % 2]
            wrapped = number & ((1 << 8 * width) - 1)
            replaced = wrapped.to_bytes(width, "little") if amount % 3 == 0 else wrapped.to_bytes(width, "big")
            return data[:at] + replaced + data[at + width :]
        case "varint":
            zigzag, out = (number << 1) ^ (number >> 63), bytearray()
            zigzag &= 2**64 - 1
            while zigzag > 127:
                out.append(zigzag & 127 | 128)
                zigzag >>= 7
            return data[:at] + bytes([*out, zigzag]) + data[at + 1 :]
        case "cut":
            return data[:at]
        case "remove":
            return data[:at] + data[at + 1 + amount % 64 :]
        case "repeat":
            return data[: at + 1 + amount % 512] + data[at:]
        case "swap":
            other = amount % len(data)
            low, high = sorted((at, other))
            return data[:low] + data[high : high + 32] + data[low : low + 32] + data[high + 32 :]
        case _:
            return _with_json_value(data, choice, amount)


def _with_json_value(data: bytes, choice: int, amount: int) -> bytes:
    """One of a JSON document's values replaced by another; other bytes are left alone."""
    try:
        text = data.decode()
        json.loads(text)
    except (ValueError, RecursionError):
        return data
    colons = [i for i, character in enumerate(text) if character == ":" and text[i - 1] in '" ']
    if not colons:
        return data
    at = colons[amount % len(colons)] + 1
    skipped = len(text[at:]) - len(text[at:].lstrip())
    try:
        _, end = json.JSONDecoder().raw_decode(text[at:].lstrip())
    except (ValueError, RecursionError):  # a colon within a text; too deep a value
        return data
    return (text[:at] + JSON_VALUES[choice % len(JSON_VALUES)] + text[at + skipped + end :]).encode()


@pytest.mark.parametrize("name", PARSERS)
def test_changed_bytes_are_read_or_refused_with_a_typed_error(name: str) -> None:
    ask, sources = PARSERS[name]
    answers: Counter[str] = Counter()

    def put(table: str, path: str, data: bytes) -> None:
        for question in ask(table, path, data):
            try:
                with bounded():
                    question()
            except EventideError as error:
                answers[type(error).__name__] += 1
            else:
                answers["read"] += 1

    for table, path in sources:
        put(table, path, files_of(table)[path])
    assert answers["read"] >= len(sources), "what is not changed can be read"

    @settings(
        max_examples=50 * CAMPAIGN,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=CAMPAIGN == 1,
        database=None,
    )
    @given(st.sampled_from(sources), EDITS)
    def check(source: tuple[str, str], edits: list[Edit]) -> None:
        table, path = source
        reached(f"hostile {name}, cases")
        put(table, path, edited(files_of(table)[path], edits))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown < MEGABYTES_MAX, f"{grown} MB for a file of some kilobytes"
    reached(f"hostile {name}, answered", answers["read"])
    reached(f"hostile {name}, refused", answers.total() - answers["read"])
    assert len(answers) > 1, f"nothing but {answers}"


def test_a_log_whose_blocks_are_read_has_the_headers_that_it_says() -> None:
    """Headers alone, of every prefix of a log: a write may break off anywhere."""
    table, path = PARSERS["log file"][1][0]
    data = files_of(table)[path]
    for end in range(0, len(data), max(1, len(data) // 400)):
        storage = in_memory(path, data[:end])
        blocks = [placed.block for placed in read_headers(storage, path, end, is_strict=False)]
        assert [block.offset for block in blocks] == sorted({block.offset for block in blocks})
        assert not blocks or blocks[-1].end == end
