"""The values of a repair: what is wrong, and which files change to repair it. Paths are relative to the table's root."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.plans import ForeignPlan

BACKUP_DIRECTORY: Final = ".hoodie/.backup"
"""A directory for each repair, by instant, with the files that it changed."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The file is removed. The backup keeps it."""

    path: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """The file gets `data` as its content, whether it exists or not."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Copying:
    """The file, which may exist, becomes a copy of `source`."""

    path: str
    source: str


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """The commit file at `path` gets `metadata`, in which the numbers of records are still missing.

    The data files state them when the repair is made.
    """

    path: str
    metadata: CommitMetadata


@dataclass(frozen=True, slots=True)
class RollbackRebuilding:
    """The completed file of a rollback states again what the rollback's plan does."""

    path: str


@dataclass(frozen=True, slots=True)
class Truncation:
    """The file is cut to `size` bytes, if it repeats behind them what is before them."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class HistoryRebuilding:
    """The file of the archived timeline gets the delta commits in `commits`, by requested time.

    The numbers of records are still missing in them.
    """

    path: str
    commits: Mapping[str, CommitMetadata]


@dataclass(frozen=True, slots=True)
class Remerging:
    """The base files at `paths` are merged again, in the order of the operations of `plan`.

    The plan is another engine's and names these slices alone. `commit` is the commit of all of it, and its file, at
    `commit_path`, gets the sizes of the new base files.
    """

    paths: tuple[str, ...]
    plan: ForeignPlan
    commit_path: str
    commit: CommitMetadata


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """hoodie.properties, at `path`, gets these `values` by key; None removes the key. Every other key keeps its value."""

    path: str
    values: Mapping[str, str | None]


Change = Removal | Replacement | Copying
PlannedChange = Change | HistoryRebuilding | Rebuilding | Remerging | RollbackRebuilding | Truncation | SettingsChange
"""A change, or one whose bytes are made when the repair is."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair. `check` found the `problem` of `path`; `action` states what the `changes` do; `loses` what they cost.

    These texts are clauses for people, of which `path` is the subject. `loses` is None if the table is as it was before the
    damage. `changes` are made in this order; there are none for the metadata table.

    `rerun` is the compaction that the changes make pending again, and that is then run again. `rebuilt_indexes` are those
    with which the metadata table is rebuilt, which changes no other file; None if it is not.
    """

    check: str
    path: str
    problem: str
    action: str
    changes: tuple[PlannedChange, ...]
    loses: str | None = None
    rerun: str | None = None
    rebuilt_indexes: tuple[str, ...] | None = None

    def described(self) -> dict[str, str | None]:
        """The repair for people, as plain values."""
        return {name: getattr(self, name) for name in ("check", "path", "problem", "action", "loses")}


@dataclass(frozen=True, slots=True)
class Unrepaired:
    """Damage that no repair removes: the `problem` of `path` that `check` found, and the `cure` for a person to apply."""

    check: str
    path: str
    problem: str
    cure: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What a repair would do, at most one of the `repairs` for a path, and the damage that it would leave (`unrepaired`).

    Both are in the order of the checks, but the metadata table is repaired last.
    """

    repairs: tuple[Repair, ...]
    unrepaired: tuple[Unrepaired, ...]
