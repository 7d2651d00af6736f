"""What was measured, as tables: of each contestant the least it ever cost, and its ratio to each other one of its task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.processes import Cost


@dataclass(frozen=True, slots=True)
class Sample:
    """One run."""

    workload: str
    records: int
    task: str
    peer: str
    round_number: int
    cost: Cost


def table_of(title: str, samples: Sequence[Sample]) -> str:
    """A table in Markdown; times in seconds of the processor, the least and the greatest of all runs."""
    lines = [
        f"### {title}",
        "",
        "| task | | warm, s | spread | cold, s | wall, s | peak MB | eventide's ratio, warm | cold |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task in dict.fromkeys(sample.task for sample in samples):
        of_task = [sample for sample in samples if sample.task == task]
        ours = [sample for sample in of_task if sample.peer == "eventide"]
        for peer in dict.fromkeys(sample.peer for sample in of_task):
            mine = [sample for sample in of_task if sample.peer == peer]
            warm, cold = _cpu(mine, is_cold=False), _cpu(mine, is_cold=True)
            wall = min(sample.cost.wall_s for sample in mine if not sample.cost.is_cold)
            peak = max(sample.cost.peak_mb for sample in mine)
            ratios = ["", ""]
            if peer != "eventide" and ours:
                ratios = [
                    f"{min(_cpu(ours, is_cold=is_cold)) / min(costs):.2f}"
                    for is_cold, costs in ((False, warm), (True, cold))
                ]
            lines.append(
                f"| {task} | {peer} | {min(warm):.2f} | {min(warm):.2f}-{max(warm):.2f} | {min(cold):.2f} | {wall:.1f} "
                f"| {peak} | {ratios[0]} | {ratios[1]} |"
            )
    return "\n".join([*lines, ""])


def _cpu(samples: Iterable[Sample], *, is_cold: bool) -> list[float]:
    return [sample.cost.cpu_s for sample in samples if sample.cost.is_cold == is_cold]
