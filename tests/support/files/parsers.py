"""Each parser of a table's bytes: its real use, and files of Hudi and eventide that it reads."""

import tarfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from unittest import mock

from eventide.testing.crash_enumeration import OPTIONS, Bench, pending_plan
from eventide.testing.histories import EPOCH_MS, Layout, Story, put
from eventide.testing.oracle import Order
from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.parquet.bloom_filter import FOOTER_KEY, SIMPLE, TYPE_FOOTER_KEY, BloomFilter
from eventide_adapters.format.encoding.parquet.inflated_pages import InflatedPages
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.format.slice.base_file.parquet import read_base, read_footer
from eventide_adapters.format.slice.log_content.content import ArrowLogContent
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.timeline.archived_lsm import open_archived_timeline
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.settings.table_config import TableConfig
from support.files.facts_of_logs import facts_of
from support.pasts import golden

CODEC = HudiMetadataCodec()
OWN = "eventide's own"

Questions = Iterator[Callable[[], object]]
"""A request for a file of a table, which returns an answer or refuses the file."""


@cache
def files_of(table: str) -> dict[str, bytes]:
    """The files of a golden table, or of one of eventide's own, by path."""
    if table == OWN:
        return own_files()
    with tarfile.open(golden.DIRECTORY / f"{table}.tar.gz") as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {m.name.removeprefix("./"): archive.extractfile(m).read() for m in members}  # type: ignore[union-attr]


def own_files() -> dict[str, bytes]:
    """A table of eventide's, partially compacted and cleaned."""
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
    """The largest and the smallest file of each table whose path has this beginning and end."""
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
    """The shape of the table's records, from its last commit."""
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
    yield lambda: list(LogCursor(storage, logs, blocks, is_strict=True).parts(shape, None))
    yield lambda: list(LogCursor(storage, logs, blocks, is_strict=False).parts(shape, None))
    yield lambda: facts_of(ArrowLogContent(storage), LogFile(name, path, len(data)), shape)


def about_base_file(table: str, path: str, data: bytes) -> Questions:
    storage = in_memory(path, data)

    def bloom_filter() -> BloomFilter:
        footer = read_footer(storage, path)
        return BloomFilter(footer.get(TYPE_FOOTER_KEY, SIMPLE), footer.get(FOOTER_KEY, ""), path)

    def inflated() -> object:
        with mock.patch.object(InflatedPages, "of", partial(InflatedPages.of, bytes_min=0)):
            return list(read_base(storage, path, table_fields(shape_of(table).schema)))

    yield lambda: list(read_base(storage, path, table_fields(shape_of(table).schema)))
    yield inflated
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
    yield lambda: HudiMetadataTable(storage).listing(())


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
