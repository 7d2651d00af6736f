"""What was measured, as tables: the median cost of each contestant, and its ratio to each other one of its task."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.processes import Cost


@dataclass(frozen=True, slots=True)
class Sample:
    """One run, on a day in ISO-8601."""

    workload: str
    records: int
    task: str
    peer: str
    day: str
    round_number: int
    cost: Cost


def read_samples(file: Path) -> list[Sample]:
    """All that a file of JSON lines holds."""
    found = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [Sample(**{**sample, "cost": Cost(**sample["cost"])}) for sample in found]


def typical(samples: Sequence[Sample], task: str, peer: str, *, is_cold: bool) -> float | None:
    """The median of what a contestant spent on a task, in seconds of the processor; None if it was not measured."""
    found = _cpu(samples, task, peer, is_cold=is_cold)
    return median(found) if found else None


def table_of(title: str, samples: Sequence[Sample]) -> str:
    """A table in Markdown. Times are medians, in seconds of the processor except for the wall time.

    The spread is from the least to the greatest of all warm runs.
    """
    lines = [
        f"### {title}",
        "",
        "| task | | warm, s | spread | cold, s | wall, s | peak MB | eventide's ratio, warm | cold |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    tasks = dict.fromkeys(sample.task for sample in samples)
    for task, peer in dict.fromkeys((task, sample.peer) for task in tasks for sample in samples if sample.task == task):
        mine = [sample for sample in samples if (sample.task, sample.peer) == (task, peer)]
        warm, cold = _cpu(mine, task, peer, is_cold=False), _cpu(mine, task, peer, is_cold=True)
        ratios = ["", ""]
        if peer != "eventide":
            for place, is_cold in enumerate((False, True)):
                ours = typical(samples, task, "eventide", is_cold=is_cold)
                if ours is not None:
                    ratios[place] = f"{ours / median(cold if is_cold else warm):.2f}"
        wall = median(sample.cost.wall_s for sample in mine if not sample.cost.is_cold)
        peak = max(sample.cost.peak_mb for sample in mine)
        lines.append(
            f"| {task} | {peer} | {median(warm):.2f} | {min(warm):.2f}-{max(warm):.2f} | {median(cold):.2f} | {wall:.1f} "
            f"| {peak} | {ratios[0]} | {ratios[1]} |"
        )
    return "\n".join([*lines, ""])


def _cpu(samples: Sequence[Sample], task: str, peer: str, *, is_cold: bool) -> list[float]:
    return [
        sample.cost.cpu_s
        for sample in samples
        if (sample.task, sample.peer) == (task, peer) and sample.cost.is_cold == is_cold
    ]
