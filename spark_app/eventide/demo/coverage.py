"""Which event times each file of each slice holds."""

from dataclasses import dataclass
from enum import StrEnum

from eventide.demo.flights import EVENT_TIME
from eventide.plan import Plan
from eventide.table import Table


class Role(StrEnum):
    """What a file is to a compaction."""

    BASE = "base"
    MERGED = "merged"
    LEFT = "left over"


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """One file's event times, in epoch milliseconds, both ends inside."""

    name: str
    role: Role
    min_ms: int
    max_ms: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The files of each slice, by a slice's name: base first, then logs in reader order."""

    slices: dict[str, tuple[FileCoverage, ...]]


def coverage_of(table: Table, plan: Plan | None) -> Coverage:
    """The table as it is; with a plan its logs have the role that the plan gives them, else all are left over."""
    found = table.describe()
    merged = {log.path for op in plan.operations for log in op.compacted} if plan is not None else set[str]()
    bases = _base_ranges(table)
    slices: dict[str, tuple[FileCoverage, ...]] = {}
    for file_slice in found.file_slices:
        files: list[FileCoverage] = []
        base = file_slice.base_file
        if base is not None and str(base.name) in bases:
            files.append(FileCoverage(str(base.name), Role.BASE, *bases[str(base.name)]))
        for log in file_slice.log_files:
            times = found.facts[log.path].event_times
            if times.min_ms is not None and times.max_ms is not None:
                role = Role.MERGED if log.path in merged else Role.LEFT
                files.append(FileCoverage(str(log.name), role, times.min_ms, times.max_ms))
        slices[f"{file_slice.partition} {file_slice.file_id[:8]}"] = tuple(files)
    return Coverage(slices)


def _base_ranges(table: Table) -> dict[str, tuple[int, int]]:
    """The event times of each base file, by its name: Hudi's own column of it says where a row lies."""
    rows = table.read_optimized().to_arrow(["_hoodie_file_name", EVENT_TIME])
    grouped = rows.group_by("_hoodie_file_name").aggregate([(EVENT_TIME, "min"), (EVENT_TIME, "max")])
    return {
        row["_hoodie_file_name"]: (
            int(row[f"{EVENT_TIME}_min"].timestamp() * 1000),
            int(row[f"{EVENT_TIME}_max"].timestamp() * 1000),
        )
        for row in grouped.to_pylist()
    }
