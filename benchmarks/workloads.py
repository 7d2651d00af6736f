"""The tables that are measured: what each one holds, and which options stock Hudi writes it with."""

from dataclasses import dataclass
from typing import Final, Literal

Columns = Literal["plain", "wide", "nested", "decimals"]
Blocks = Literal["avro", "parquet"]

FULL_RECORDS: Final = 1_600_000
FIRST_EVENT_MS: Final = 1_700_000_000_000
COMMIT_MS: Final = 600_000
LATE_COMMITS: Final = 3
"""The events of each commit lie in ten minutes of their own, except for one in twenty that is up to half an hour late."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A table of `records` keys in `slices` file groups, then `upserts` commits that each touch `share` of them, and one
    that deletes `deleted`, if any. Everything after the first commit is log files.
    """

    name: str
    records: int = FULL_RECORDS
    slices: int = 8
    upserts: int = 6
    share: float = 0.1
    deleted: float = 0.005
    columns: Columns = "plain"
    blocks: Blocks = "avro"
    version: int = 6
    same_rows_as: str | None = None
    """The workload with the very same rows, where those are measured who know neither logs nor file groups."""

    @property
    def is_for_halves(self) -> bool:
        """Without deletes: deletes of stock Hudi have no event time, so a log of them is in every cut, with all below it."""
        return not self.deleted

    @property
    def half_way_ms(self) -> int:
        """The greatest T that retires no more than half of the upserts' logs: nothing of the others lies before it."""
        return FIRST_EVENT_MS + (self.upserts // 2 + 1 - LATE_COMMITS) * COMMIT_MS


def workloads(records: int) -> dict[str, Workload]:
    """All of them by name, the plain one with `records` records and the others in proportion."""
    slices = 8 if records >= 8 * 1000 else 2
    found = (
        Workload("avro-v6", records, slices),
        Workload("parquet-v6", records, slices, blocks="parquet", same_rows_as="avro-v6"),
        Workload("avro-v9", records, slices, version=9, same_rows_as="avro-v6"),
        Workload("parquet-v9", records, slices, blocks="parquet", version=9, same_rows_as="avro-v6"),
        Workload("wide", records // 8, max(1, slices // 4), columns="wide"),
        Workload("nested", records // 4, max(1, slices // 4), columns="nested"),
        Workload("decimals", records // 4, max(1, slices // 4), columns="decimals"),
        Workload("few-touched", records, slices, share=0.002, deleted=0.0002),
        Workload("one-large", records, 1, same_rows_as="avro-v6"),
        Workload("halves-v6", records, slices, deleted=0, same_rows_as="avro-v6"),
        Workload("halves-v9", records, slices, deleted=0, version=9, same_rows_as="avro-v6"),
    )
    return {workload.name: workload for workload in found}
