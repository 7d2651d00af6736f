"""Checks that read records: the deep ones."""

from collections.abc import Iterator
from typing import Final

from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.lost_completions import lost_completions
from eventide_core.action.verification.parts import RecordFacts
from eventide_core.action.verification.result import Finding, Observation, Remark, Unchecked, deep_check, restore_cure
from eventide_core.errors import counted, format_timestamp
from eventide_core.table.files.file_name import path_in
from eventide_core.table.files.slice_audit import RepeatedKey, StrayKeys
from eventide_core.table.settings.metadata_table import REBUILD_CURE, RECORD_INDEX
from eventide_core.table.timeline.contents.commit_metadata import LOG_COMPACT

_INSERTS = frozenset({"INSERT", "BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})


def _records(facts: TableFacts) -> RecordFacts:
    assert facts.records is not None, "a deep check needs the records"
    return facts.records


@deep_check("records-readable", "I10", "every record of the latest slices can be decoded")
def check_readability(facts: TableFacts) -> Iterator[Observation]:
    records = _records(facts)
    unreadable = dict(records.problems)
    for audit in records.audits:
        unreadable.update(audit.unreadable)
    for path, why in sorted(unreadable.items()):
        yield Finding(path, why, restore_cure(facts, path))


@deep_check(
    "checksums",
    "I10",
    "each file that eventide wrote, linked or copied has the bytes that it was written with",
    is_of_slices=False,
)
def check_checksums(facts: TableFacts) -> Iterator[Observation]:
    """Each file of which a commit records a checksum has it."""
    checksums = _records(facts).checksums
    for path, checksum in sorted(checksums.items()):
        time, stat, recorded = facts.recorded_checksums[path]
        if checksum is not None and checksum != recorded:
            problem = (
                f"its {stat.file_size_bytes} bytes have the checksum {checksum}, but {recorded} by the commit {time}: "
                "some byte has changed since"
            )
            yield Finding(path, problem, restore_cure(facts, path))
    without = sum(1 for path in facts.sizes if path in facts.committed and path not in facts.recorded_checksums)
    if without:
        yield Remark(f"{without} files have no checksum in their commit: other engines wrote them")
    if not facts.recorded_checksums:
        yield Unchecked("no commit on the active timeline records checksums")


@deep_check("record-counts", "I10", "a log file has as many records of a write as its commit says")
def check_record_counts(facts: TableFacts) -> Iterator[Observation]:
    for audit in _records(facts).audits:
        for path, of_writes in sorted(audit.log_records.items()):
            stats = [(time, stat) for time, stat in facts.committed.get(path, ()) if time in of_writes]
            for time in sorted({time for time, _ in stats}):
                if facts.commits[time].operation_type.upper() == LOG_COMPACT:
                    continue  # its block repeats the records of others
                stated = sum(stat.num_writes for of, stat in stats if of == time)
                if of_writes[time] < stated:
                    problem = f"has {of_writes[time]} records of {time}, but {stated} by that commit"
                    yield Finding(path, problem, restore_cure(facts, path))


@deep_check("record-versions", "I10", "each version of a record is in one place, and no key is in two")
def check_versions(facts: TableFacts) -> Iterator[Observation]:
    """Checks versions and keys.

    1. No version of a record is there twice, and of no write that never completed.
    2. No key exists twice, unless Hudi's insert operations may have written it so: they don't look for keys.
    """
    records = _records(facts)
    repeated = [(a.partition, one) for a in records.audits for one in a.repeated] + list(records.repeated)
    for partition, one in repeated:
        place = ", ".join(path_in(partition, file_id) for file_id in one.places)
        keys = f"{one.count} keys, such as {one.example!r}," if one.count > 1 else f"the key {one.example!r}"
        verb = "exist" if one.count > 1 else "exists"
        if not one.is_same_version and _may_be_inserted(facts, one):
            yield Remark(f"{keys} {verb} more than once in {place}: insert operations may write duplicates")
        else:
            what = "in the same version" if one.is_same_version else f"as of {', '.join(one.commit_times)}"
            cure = "delete the key, and write it again: its other versions go"
            if RECORD_INDEX in facts.index.partitions:
                cure += f"; the record index leads to one place: between deletes, {REBUILD_CURE}"
            yield Finding(place, f"{keys} {verb} more than once, {what}", cure)
    lost = lost_completions(facts)
    for audit in records.audits:
        for time, rows in sorted(audit.commit_times.items()):
            if not facts.blocks.accepts(time) and time not in lost:
                problem = f"has {rows} records of {time}, which is not a completed write"
                cure = (
                    "if a compaction merged them, the write had completed: restore its timeline file from a copy; otherwise "
                    "restore the table to a savepoint before them"
                )
                yield Finding(path_in(audit.partition, audit.file_id), problem, cure)


def _may_be_inserted(facts: TableFacts, key: RepeatedKey) -> bool:
    """Whether one of the key's writes was an insert, as far as is known: what has been archived may have been."""
    if not key.commit_times:
        return True
    written = [facts.commits.get(time) for time in key.commit_times]
    return any(metadata is None or metadata.operation_type.upper() in _INSERTS for metadata in written)


@deep_check("key-indexes", "I11", "the bloom filter and key range of a base file exclude none of its keys")
def check_indexes(facts: TableFacts) -> Iterator[Observation]:
    for audit in _records(facts).audits:
        if audit.hidden_keys is not None:
            place = path_in(audit.partition, audit.file_id)
            problem = f"its base file's bloom filter hides {_keys(audit.hidden_keys)} from writers"
            yield Finding(place, problem, "compact the slice again, which writes the footer again and loses nothing")


@deep_check("read-optimized", "I2", "every row before the watermark is in the read-optimized view")
def check_read_optimized(facts: TableFacts) -> Iterator[Observation]:
    """Every row of the snapshot before the watermark is in the read-optimized view, in the same version."""
    records = _records(facts)
    if records.watermark_ms is None:
        has_unreadable = any(times.unreadable_records for times in facts.event_times.uncompacted.values())
        yield Unchecked(
            "there is no watermark, because event times in log files cannot be read"
            if has_unreadable
            else "no event-time compaction has published a cut"
        )
        return
    for audit in records.audits:
        if audit.late_rows is not None:
            place = path_in(audit.partition, audit.file_id)
            watermark = format_timestamp(records.watermark_ms)
            problem = f"{_keys(audit.late_rows)} before the watermark {watermark} are not in the base file"
            yield Finding(place, problem, "compact the table again before a later T; this loses nothing")


_UNTRUSTED: Final = "omit hoodie.payload.event.time.field: then eventide reads log files, and trusts no write stat"


@deep_check("event-times", "I2", "no record has an event time outside the range that the table states of its file")
def check_event_times(facts: TableFacts) -> Iterator[Observation]:
    """Checks event times.

    No log file holds a record earlier than its write stat, or its headers, state for the planner, or an unreadable one. No
    base file holds one outside the range in its footer, which decides whether a view is exact, and which files have a
    window.

    An unreadable event time that the planner knows of breaks nothing: there is no watermark until it is merged.
    """
    for audit in _records(facts).audits:
        if audit.unstated_times is not None:
            place = path_in(audit.partition, audit.file_id)
            problem = (
                f"its base file's footer states a range of event times that leaves out {_keys(audit.unstated_times)}"
            )
            yield Finding(place, problem, "compact the slice again, which writes the footer again and loses nothing")
        for path, unreadable in sorted(audit.unreadable_event_times.items()):
            claimed = facts.event_times.of_logs.get(path)
            records = counted(unreadable.count, "record")
            named = f"holds {records} with an event time that cannot be read: key {unreadable.example}"
            if claimed is not None and claimed.unreadable_records:
                yield Remark(f"{path}: {named}")
            else:
                yield Finding(path, f"{named}, which its statistics don't have", _UNTRUSTED)
        for path, least in sorted(audit.least_event_time_ms.items()):
            claimed = facts.event_times.of_logs.get(path)
            if claimed is None or least is None:
                continue
            if claimed.min_ms is None or least < claimed.min_ms:
                first, stated = format_timestamp(least), format_timestamp(claimed.min_ms)
                problem = f"holds a record of {first}, but its statistics start at {stated}"
                yield Finding(path, problem, _UNTRUSTED)


@deep_check("compacted-rows", "S1", "the slices before and after a compaction show the same rows", is_of_slices=False)
def check_compacted_rows(facts: TableFacts) -> Iterator[Observation]:
    """If a compaction's old files still exist, its old slice and its new one show the same rows."""
    without = _compactions_of_lost_writes(facts)
    differences = {path: difference for path, difference in _records(facts).differences.items() if path not in without}
    left_out = Remark if differences else Unchecked
    if without:
        slices = counted(len(without), "compacted slice")
        yield left_out(f"{slices} left out: a write in the old slice has lost its completed file")
    for path, difference in sorted(differences.items()):
        if difference is None:
            continue
        for what, keys in (("lost", difference.lost), ("added", difference.added), ("changed", difference.changed)):
            if keys is not None:
                cure = (
                    "roll the compaction back, which loses nothing; or restore the table to a savepoint before it, which "
                    "loses every later commit"
                )
                yield Finding(path, f"the compaction that wrote it {what} {_keys(keys)}", cure)
    compacted = sum(len(plan.operations) for plan in facts.compactions.values()) - len(without)
    if compacted > len(differences):
        slices = counted(compacted - len(differences), "compacted slice")
        yield left_out(f"{slices} left out: files of the old slice are gone")
    if not compacted and not without:
        yield Unchecked("no compaction of eventide is on the active timeline with its plan")


def _compactions_of_lost_writes(facts: TableFacts) -> frozenset[str]:
    """The base files that compactions of eventide made of slices whose old rows are not known."""
    lost = lost_completions(facts).keys()
    paths: set[str] = set()
    for plan in facts.compactions.values() if lost else ():
        for op in plan.operations:
            logs = (*op.compacted, *(left.log_file for left in op.left_overs))
            scans = [facts.log_scans.get(log.path) for log in logs]
            instants = {op.base_instant, *(i for scan in scans if scan is not None for i in scan.instants)}
            if lost & instants:
                paths.add(op.new_base_path)
    return frozenset(paths)


def _keys(stray: StrayKeys) -> str:
    return f"{stray.count} keys, such as {stray.example!r}," if stray.count > 1 else f"the key {stray.example!r}"
