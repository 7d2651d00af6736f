"""Writes the results in README.md between two marks, from samples."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.goals import goals_tables, terabyte_table
from benchmarks.report import Sample, table_of

BEGIN: Final = "<!-- results: written by `python -m benchmarks --write` -->"
END: Final = "<!-- end of results -->"


def with_results(readme: str, samples: Sequence[Sample], base_bytes: Mapping[str, int]) -> str:
    """The text with everything between the marks made again; workloads are in the order of the samples.

    `base_bytes`: the size of the base files of a workload's table.
    """
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    assert after, "README.md has both marks"
    names = list(dict.fromkeys(sample.workload for sample in samples))
    tables = [table_of(f"`{name}`", [sample for sample in samples if sample.workload == name]) for name in names]
    costs = terabyte_table(names, samples, base_bytes)
    parts = ["", _measured_when(samples), goals_tables(names, samples), costs, *tables]
    return before + BEGIN + "\n".join(parts) + END + after


def _measured_when(samples: Sequence[Sample]) -> str:
    days = sorted({sample.day for sample in samples})
    runs = Counter((sample.workload, sample.task, sample.peer) for sample in samples if not sample.cost.is_cold)
    counts = " to ".join(str(count) for count in sorted({min(runs.values()), max(runs.values())}))
    noun = "run" if counts == "1" else "runs"
    return f"{' to '.join(sorted({days[0], days[-1]}))}; {counts} warm {noun} of each contestant at each task.\n"
