"""Damages made by hand to a table of eventide's own, in memory: base files, a partial compaction with two left-overs, a
later write. Each with the checks that should find it.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment, pending_plan
from eventide.testing.histories import EPOCH_MS, Layout, Story, put
from eventide.testing.oracle import Order
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import EXCLUSIVE, LinkChoice
from eventide_core.ports import NoProgress
from eventide_core.table.settings.properties import BACKUP_PATH, PROPERTIES_PATH
from eventide_core.table.timeline.contents.checksums import CHECKSUMS_KEY
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.plans import CompactionPlan

CODEC = HudiMetadataCodec()
LAYOUTS = {version: Layout(version, Order.EVENT_TIME) for version in (6, 9)}
CELLS = [(6, LinkChoice.COPY), (9, LinkChoice.COPY), (9, LinkChoice.SYMLINK)]


@dataclass(slots=True)
class Damaged:
    """A table that is being damaged. `plan` is its compaction's; `first`, `late` are commits before and after it."""

    version: int
    files: dict[str, MemoryFile]
    plan: CompactionPlan
    first: str
    late: str
    directory: str

    @property
    def left_over(self) -> str:
        """The first left-over's name in the new slice of partition a."""
        op = self.plan.operations[0]
        return op.path_of(op.left_overs[0].new_name or op.left_overs[0].log_file.name)

    @property
    def base(self) -> str:
        op = self.plan.operations[0]
        return op.path_of(op.new_base_name)

    @property
    def old_base(self) -> str:
        """A base file that no compaction has taken: the one in partition b."""
        return next(path for path in self.files if path.startswith("part=b/") and path.endswith(".parquet"))

    @property
    def late_log(self) -> str:
        """The log of the write after the compaction."""
        return next(stat.path for stat in self.commit(self.late)[1].stats)

    @property
    def times(self) -> list[str]:
        """The requested times of the completed writes, in order."""
        names = [path.rpartition("/")[2] for path in self.files if path.rpartition("/")[0] == self.directory]
        return sorted(name[:17] for name in names if name.endswith(".deltacommit"))

    def put(self, path: str, data: bytes) -> None:
        self.files[path] = MemoryFile(data, 1)

    def data(self, path: str) -> bytes:
        link = self.files[path].link_target
        return self.files[path if link is None else link].data

    def commit(self, time: str) -> tuple[str, CommitMetadata]:
        names = [p for p in self.files if p.startswith(f"{self.directory}/{time}") and p.endswith("commit")]
        return names[0], CODEC.decode_commit(self.files[names[0]].data, names[0])

    def set_commit(self, time: str, change: Callable[[CommitMetadata], CommitMetadata]) -> None:
        path, metadata = self.commit(time)
        self.put(path, CODEC.encode_commit(change(metadata), self.version))

    def set_plan(self, change: Callable[[CompactionPlan], CompactionPlan]) -> None:
        path = f"{self.directory}/{self.plan.instant}.compaction.requested"
        self.put(path, CODEC.encode_plan(change(self.plan)))

    def rewrite_base(self, path: str, change: Callable[[pa.Table], pa.Table]) -> None:
        """Other rows in a base file, which its commit states as if they were its own."""
        table = pq.read_table(io.BytesIO(self.files[path].data))
        changed = change(table)
        sink = io.BytesIO()
        pq.write_table(changed, sink)
        self.put(path, sink.getvalue())
        self.set_commit(self.first, lambda commit: _restated(commit, path, len(sink.getvalue()), len(changed)))


def _restated(commit: CommitMetadata, path: str, size: int, rows: int) -> CommitMetadata:
    stats = {
        partition: tuple(
            stat._replace(file_size_bytes=size, num_writes=rows) if stat.path == path else stat for stat in of_partition
        )
        for partition, of_partition in commit.write_stats.items()
    }
    known = {name: text for name, text in commit.extra_metadata.items() if name != CHECKSUMS_KEY}
    return replace(commit, write_stats=stats, extra_metadata=known)


def _with_extra(commit: CommitMetadata, **extra: str) -> CommitMetadata:
    return replace(commit, extra_metadata={**commit.extra_metadata, **extra})


def dangling_link(table: Damaged) -> None:
    table.files[table.left_over] = MemoryFile(b"", 1, "part=a/.gone_20260101000000000.log.1_0-1-0")


def link_out_of_the_table(table: Damaged) -> None:
    table.files[table.left_over] = MemoryFile(b"", 1, "/etc/passwd")


def link_by_a_link(table: Damaged) -> None:
    op = table.plan.operations[0]
    table.files[op.path_of(op.left_overs[1].new_name or "")] = MemoryFile(b"", 1, table.left_over)


def link_to_another_left_over(table: Damaged) -> None:
    op = table.plan.operations[0]
    table.files[op.path_of(op.left_overs[0].new_name or "")] = MemoryFile(b"", 1, op.left_overs[1].log_file.path)


def missing_copy(table: Damaged) -> None:
    del table.files[table.left_over]


def missing_base(table: Damaged) -> None:
    del table.files[table.base]


def unreadable_commit_of_a_compaction(table: Damaged) -> None:
    path, _ = table.commit(table.plan.instant)
    table.put(path, table.data(path)[:100])


def bit_flip_in_a_compacted_base_file(table: Damaged) -> None:
    data = bytearray(table.data(table.base))
    data[4] ^= 0xFF
    table.put(table.base, bytes(data))


def cut_off_compacted_base_file(table: Damaged) -> None:
    table.put(table.base, table.data(table.base)[:-20])


def missing_log(table: Damaged) -> None:
    del table.files[table.late_log]


def missing_base_of_an_old_slice(table: Damaged) -> None:
    """No query of now needs it, and no clean has removed it."""
    path = table.plan.operations[0].base_path
    assert path is not None
    del table.files[path]


def missing_log_of_an_old_slice(table: Damaged) -> None:
    del table.files[table.plan.operations[0].compacted[0].path]


def log_with_fewer_records_than_its_commit_says(table: Damaged) -> None:
    def change(commit: CommitMetadata) -> CommitMetadata:
        stats = {
            partition: tuple(stat._replace(num_writes=stat.num_writes + 1) for stat in of_partition)
            for partition, of_partition in commit.write_stats.items()
        }
        return replace(commit, write_stats=stats)

    table.set_commit(table.late, change)


def doubled_log(table: Damaged) -> None:
    table.put(table.late_log, 2 * table.data(table.late_log))


def text_that_is_not_utf_8(table: Damaged) -> None:
    def change(rows: pa.Table) -> pa.Table:
        texts = pa.array([b"\xff\xfe"] * len(rows), pa.binary()).view(pa.string())
        return rows.set_column(rows.column_names.index("word"), "word", texts)

    table.rewrite_base(table.old_base, change)


def timeline_file_without_an_instant(table: Damaged) -> None:
    path, _ = table.commit(table.late)
    directory, _, name = path.rpartition("/")
    table.put(f"{directory}/copy-of-{name}", table.files[path].data)


def doubled_record(table: Damaged) -> None:
    table.rewrite_base(table.old_base, lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]))


def record_of_a_write_that_never_completed(table: Damaged) -> None:
    def change(rows: pa.Table) -> pa.Table:
        column = pa.array(["29991231235959999"] * len(rows), pa.string())
        return rows.set_column(rows.column_names.index("_hoodie_commit_time"), "_hoodie_commit_time", column)

    table.rewrite_base(table.old_base, change)


def keys_that_the_footer_hides(table: Damaged) -> None:
    def change(rows: pa.Table) -> pa.Table:
        column = pa.array([f"other {n}" for n in range(len(rows))], pa.string())
        return rows.set_column(rows.column_names.index("_hoodie_record_key"), "_hoodie_record_key", column)

    table.rewrite_base(table.old_base, change)


def watermark_beyond_the_cut(table: Damaged) -> None:
    said = {"hoodie.ro.event.time.watermark": str(EPOCH_MS + 11)}
    table.set_commit(table.plan.instant, lambda commit: _with_extra(commit, **said))


def cut_beyond_the_left_overs(table: Damaged) -> None:
    said = {"hoodie.ro.event.time.cut": str(EPOCH_MS + 13), "hoodie.ro.event.time.watermark": str(EPOCH_MS + 13)}
    table.set_commit(table.plan.instant, lambda commit: _with_extra(commit, **said))


def torn_block(table: Damaged) -> None:
    data = bytearray(table.data(table.late_log))
    data[6:14] = (1 << 40).to_bytes(8, "big")  # the block's size
    table.put(table.late_log, bytes(data))


def bit_flip_in_a_log(table: Damaged) -> None:
    """In the length of a record, so that nothing fits. A flip within a value can't be distinguished from another value."""
    data = bytearray(table.data(table.late_log))
    content = data.rindex(b"\x00\x00\x00\x03\x00\x00\x00")  # an Avro block's version and count of records
    data[content + 8] ^= 0x40
    table.put(table.late_log, bytes(data))


def bit_flip_in_a_base_file(table: Damaged) -> None:
    data = bytearray(table.data(table.old_base))
    data[4] ^= 0xFF  # the first page's header
    table.put(table.old_base, bytes(data))


def cut_off_base_file(table: Damaged) -> None:
    table.put(table.old_base, table.data(table.old_base)[:-20])


def cut_off_log(table: Damaged) -> None:
    table.put(table.late_log, table.data(table.late_log)[:-3])


def cut_off_copy(table: Damaged) -> None:
    table.put(table.left_over, table.data(table.left_over)[:-20])


def copy_of_something_else(table: Damaged) -> None:
    data = table.data(table.left_over)
    assert b"left over" in data
    table.put(table.left_over, data.replace(b"left over", b"left 0ver"))


def plan_that_forgets_a_left_over(table: Damaged) -> None:
    op = table.plan.operations[0]
    table.set_plan(lambda plan: replace(plan, operations=(replace(op, left_overs=op.left_overs[:1]),)))


def log_that_a_compaction_missed(table: Damaged) -> None:
    """Put into the old slice, with a commit that names it, as a writer does who shares no lock and knew of no plan."""
    source, instant = table.plan.operations[0].compacted[-1].path, table.plan.operations[0].base_instant
    end = source.rindex(".log.")
    path = f"{source[:end]}.log.7_9-9-9" if table.version < 8 else source.replace(".log.1_", ".log.7_")
    table.put(path, table.data(source))
    assert path != source
    time = instant if table.version < 8 else source[end - 17 : end]

    def change(commit: CommitMetadata) -> CommitMetadata:
        stats = dict(commit.write_stats)
        stats["part=a"] = (
            *stats["part=a"],
            stats["part=a"][0]._replace(path=path, file_size_bytes=len(table.data(path))),
        )
        return replace(commit, write_stats=stats)

    table.set_commit(time, change)


def orphaned_base_file(table: Damaged) -> None:
    group, token, _ = table.old_base.rpartition("/")[2].split("_")
    table.put(f"part=b/{group}_{token}_{table.late}.parquet", table.data(table.old_base))


def second_base_file_in_one_place(table: Damaged) -> None:
    group, _, end = table.base.rpartition("/")[2].split("_")
    table.put(f"part=a/{group}_9-9-9_{end}", table.data(table.base))


def orphaned_log(table: Damaged) -> None:
    name = table.late_log
    table.put(name[: name.rindex(".log.")] + ".log.9_9-9-9", table.data(name))


def copies_after_a_rollback_that_knows_no_left_overs(table: Damaged) -> None:
    """As Hudi's rollback of a pending compaction: the base goes, and the copies stay."""
    for path in [p for p in table.files if p.startswith(f"{table.directory}/{table.plan.instant}")]:
        del table.files[path]
    del table.files[table.base]


def partition_without_its_mark(table: Damaged) -> None:
    del table.files["part=b/.hoodie_partition_metadata"]


def unreadable_commit(table: Damaged) -> None:
    path, _ = table.commit(table.late)
    table.put(path, b"{ this is no commit")


def lost_completed_file(table: Damaged) -> None:
    """Of the first write, whose base files a compaction and a later write build on."""
    del table.files[table.commit(table.first)[0]]


def lost_completed_file_of_logs(table: Damaged) -> None:
    """Of a write that only added log files, which the compaction merged."""
    del table.files[table.commit(table.times[1])[0]]


def lost_completed_file_of_the_last_write(table: Damaged) -> None:
    """No other file names it. Its writer removed its markers and its heartbeat after it had completed."""
    del table.files[table.commit(table.late)[0]]


def lost_timeline_files_of_a_write(table: Damaged) -> None:
    for path in [p for p in table.files if p.startswith(f"{table.directory}/{table.times[1]}")]:
        del table.files[path]


def _set_property(table: Damaged, key: str, value: str) -> None:
    lines = table.data(PROPERTIES_PATH).decode().splitlines()
    assert any(line.startswith(f"{key}=") for line in lines)
    changed = [f"{key}={value}" if line.startswith(f"{key}=") else line for line in lines]
    table.put(PROPERTIES_PATH, "\n".join(changed).encode())


def other_record_key(table: Damaged) -> None:
    _set_property(table, "hoodie.table.recordkey.fields", "word")


def other_ordering_field(table: Damaged) -> None:
    key = "hoodie.table.ordering.fields" if table.version == 9 else "hoodie.table.precombine.field"
    _set_property(table, key, "word")


def torn_settings(table: Damaged) -> None:
    """As a writer of Hudi leaves them that dies while it changes them."""
    table.put(BACKUP_PATH, table.data(PROPERTIES_PATH))
    table.put(PROPERTIES_PATH, table.data(PROPERTIES_PATH)[:40])


def missing_settings(table: Damaged) -> None:
    table.put(BACKUP_PATH, table.data(PROPERTIES_PATH))
    del table.files[PROPERTIES_PATH]


def instant_that_completed_twice(table: Damaged) -> None:
    path, _ = table.commit(table.late)
    if table.version < 8:
        table.put(f"{table.directory}/{table.late}.commit", table.files[path].data)
    else:
        completion = path.rpartition("_")[2][:17]
        table.put(path.replace(completion, f"{int(completion) + 1}"), table.files[path].data)


def compaction_without_a_plan(table: Damaged) -> None:
    table.put(f"{table.directory}/29990101000000000.compaction.inflight", b"")


DAMAGES: Mapping[Callable[[Damaged], None], set[str]] = {
    dangling_link: {"links"},
    link_out_of_the_table: {"links"},
    link_by_a_link: {"links"},
    link_to_another_left_over: {"links"},
    missing_copy: {"committed-files"},
    missing_base: {"committed-files"},
    unreadable_commit_of_a_compaction: {"timeline"},
    bit_flip_in_a_compacted_base_file: {"records-readable", "checksums"},
    cut_off_compacted_base_file: {"committed-files", "base-files"},
    missing_log: {"committed-files"},
    missing_base_of_an_old_slice: {"committed-files"},
    missing_log_of_an_old_slice: {"committed-files"},
    log_with_fewer_records_than_its_commit_says: {"record-counts"},
    text_that_is_not_utf_8: {"records-readable"},
    timeline_file_without_an_instant: {"timeline"},
    doubled_record: {"record-versions"},
    record_of_a_write_that_never_completed: {"record-versions"},
    keys_that_the_footer_hides: {"key-indexes", "record-keys"},
    watermark_beyond_the_cut: {"freshness", "timeline"},
    cut_beyond_the_left_overs: {"freshness", "compactions", "timeline"},
    torn_block: {"log-blocks", "checksums"},
    bit_flip_in_a_log: {"records-readable", "checksums"},
    bit_flip_in_a_base_file: {"records-readable", "checksums"},
    cut_off_base_file: {"committed-files", "base-files"},
    cut_off_log: {"committed-files", "log-blocks"},
    cut_off_copy: {"left-over-copies", "log-blocks"},
    copy_of_something_else: {"left-over-bytes", "compacted-rows", "checksums"},
    plan_that_forgets_a_left_over: {"compactions"},
    log_that_a_compaction_missed: {"compactions"},
    orphaned_base_file: {"orphan-files"},
    second_base_file_in_one_place: {"file-slices"},
    orphaned_log: {"orphan-files"},
    copies_after_a_rollback_that_knows_no_left_overs: {"orphan-files"},
    partition_without_its_mark: {"file-slices"},
    unreadable_commit: {"timeline"},
    instant_that_completed_twice: {"timeline"},
    compaction_without_a_plan: {"timeline"},
    lost_completed_file: {"timeline"},
    other_record_key: {"settings", "record-keys"},
    other_ordering_field: {"settings"},
    torn_settings: {"settings"},
    missing_settings: {"settings"},
}


def table_to_damage(
    version: int, link: LinkChoice, *, has_metadata_table: bool = False
) -> tuple[Bench, Moment, Damaged]:
    """A sound table, and what is to be damaged of it."""
    layout = replace(LAYOUTS[version], has_metadata_table=has_metadata_table)
    bench = Bench("verify-damages", {**OPTIONS, EXCLUSIVE: "true"})
    story = Story.begin(layout, bench.storage, bench.clock)
    first = story.commit((put("k0", 1, "base"), put("k1", 2, "base"), put("k2", 3, "base", partition="b")))
    story.commit((put("k0", 5, "early"),))
    story.commit((put("k1", 12, "left over"), put("k3", 13, "left over")))
    story.commit((put("k3", 14, "left over too"), put("k4", 15, "left over too")))
    application = bench.process()
    application.scheduler.schedule(CompactionRequest(EPOCH_MS + 10, None, link))
    plan = pending_plan(application)
    assert [len(op.left_overs) for op in plan.operations] == [2]
    application.runner.execute(plan.instant, NoProgress())
    late = story.commit((put("k0", 20, "later"),))
    moment = bench.moment()
    directory = ".hoodie" if version < 8 else ".hoodie/timeline"
    return bench, moment, Damaged(version, dict(moment.files), plan, first, late, directory)
