"""What eventide means to reach beside each peer, and what it reached on each workload."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.peers import LIMIT_ON_ONE_CORE, ONE_CORE, ONE_SLICE
from benchmarks.report import Sample, typical

EQUAL: Final = 1.05
"""Two runs of the very same differ by that much."""
TERABYTE: Final = 1e12
PEAK_MB: Final = 450
"""The most memory of a process that compacts a slice at a time."""


@dataclass(frozen=True, slots=True)
class Goal:
    """`ours` costs at most this share of `peer`; by the clock, at most `at_most_by_clock` if that differs."""

    words: str
    task: str
    peer: str
    at_most: float
    is_cold: bool = False
    ours: str = "eventide"
    at_most_by_clock: float | None = None

    def by_clock(self) -> "Goal":
        return self if self.at_most_by_clock is None else replace(self, at_most=self.at_most_by_clock)

    def reached(self, samples: Sequence[Sample]) -> float | None:
        """The ratio; None if one of both was not measured."""
        ours = typical(samples, self.task, self.ours, is_cold=self.is_cold)
        peer = typical(samples, self.task, self.peer, is_cold=self.is_cold)
        return None if ours is None or peer is None else ours / peer


GOALS: Final = (
    Goal("compaction, gzip: of the limit", "compaction, gzip", "limit", 0.5),
    Goal("compaction, zstd: of the limit", "compaction, zstd", "limit", 1.15, at_most_by_clock=1.35),
    Goal(
        "the same, each on one core", "compaction, zstd", LIMIT_ON_ONE_CORE, 1.15, ours=ONE_CORE, at_most_by_clock=1.35
    ),
    Goal("compaction, gzip: of stock, warm", "compaction, gzip", "stock Hudi 1.1.1", 0.22),
    Goal("compaction, zstd: of stock, warm", "compaction, zstd", "stock Hudi 1.1.1", 0.3),
    Goal("compaction, gzip: of stock, cold", "compaction, gzip", "stock Hudi 1.1.1", 0.5, is_cold=True),
    Goal("compaction, zstd: of stock, cold", "compaction, zstd", "stock Hudi 1.1.1", 0.25, is_cold=True),
    Goal("half of the logs, gzip: of all", "compaction, gzip", "eventide", EQUAL, ours="eventide, half of the logs"),
    Goal("half of the logs, zstd: of all", "compaction, zstd", "eventide", EQUAL, ours="eventide, half of the logs"),
    *(
        Goal(
            f"a slice at a time, {codec}: two cores of one",
            f"compaction, {codec}",
            ONE_CORE,
            EQUAL,
            ours=ONE_SLICE,
            at_most_by_clock=0.6,
        )
        for codec in ("gzip", "zstd")
    ),
    Goal("snapshot to Arrow: of hudi-rs", "snapshot to Arrow", "hudi-rs", 0.7),
    Goal("snapshot in Spark: of stock", "snapshot in Spark", "stock Hudi 1.1.1", 0.6),
    Goal("read-optimized in Spark: of Spark's reader", "read-optimized in Spark", "Spark's parquet reader", EQUAL),
)


def goals_tables(workloads: Sequence[str], samples: Sequence[Sample]) -> str:
    """Two tables in Markdown, by the processor's time and by the clock: a goal a line, a workload a column.

    What is missed is in bold.
    """
    of_each = [[sample for sample in samples if sample.workload == name] for name in workloads]
    by_clock = [
        [replace(sample, cost=replace(sample.cost, cpu_s=sample.cost.wall_s)) for sample in mine] for mine in of_each
    ]
    peaks = [_cell(_peak_mb(mine), PEAK_MB, 0) for mine in of_each]
    lines = [
        *_head("by the processor's time", workloads),
        *_ratios(GOALS, of_each),
        f"| peak of one worker, MB | {PEAK_MB} | {' | '.join(peaks)} |",
        "",
        *_head("by the clock", workloads),
        *_ratios([goal.by_clock() for goal in GOALS], by_clock),
    ]
    return "\n".join([*lines, ""])


def terabyte_table(workloads: Sequence[str], samples: Sequence[Sample], base_bytes: Mapping[str, int]) -> str:
    """What it costs to compact a terabyte of base files in gzip, warm, in core hours.

    `base_bytes`: the size of the base files of a workload's table.
    """
    lines = [f"| to compact 1 TB of base files in gzip, core hours | {' | '.join(f'`{name}`' for name in workloads)} |"]
    lines.append("|---" * (len(workloads) + 1) + "|")
    for peer in ("eventide", "stock Hudi 1.1.1"):
        cells = []
        for name in workloads:
            mine = [sample for sample in samples if sample.workload == name]
            cpu_s = typical(mine, "compaction, gzip", peer, is_cold=False)
            is_known = cpu_s is not None and base_bytes.get(name)
            cells.append(f"{cpu_s * TERABYTE / base_bytes[name] / 3600:.0f}" if cpu_s and is_known else "")
        lines.append(f"| {peer} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _head(words: str, workloads: Sequence[str]) -> Iterator[str]:
    yield f"| goal, {words} | at most | {' | '.join(f'`{name}`' for name in workloads)} |"
    yield "|---" * (len(workloads) + 2) + "|"


def _ratios(goals: Sequence[Goal], of_each: Sequence[Sequence[Sample]]) -> Iterator[str]:
    for goal in goals:
        cells = [_cell(goal.reached(mine), goal.at_most, 2) for mine in of_each]
        yield f"| {goal.words} | {goal.at_most:g} | {' | '.join(cells)} |"


def _peak_mb(samples: Sequence[Sample]) -> float | None:
    return max((sample.cost.peak_mb for sample in samples if sample.peer == ONE_CORE), default=None)


def _cell(value: float | None, at_most: float, digits: int) -> str:
    if value is None:
        return ""
    text = f"{value:.{digits}f}"
    return text if round(value, digits) <= at_most else f"**{text}**"
