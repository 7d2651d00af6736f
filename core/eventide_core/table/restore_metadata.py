"""What a restore says of itself: the instants after its savepoint, newest first, and what undoing each of them did."""

from dataclasses import dataclass

from eventide_core.table.rollback_metadata import RollbackMetadata, RollbackTarget


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The restore requested at `instant`. `savepoint` is None where an early Hudi planned it."""

    instant: str
    savepoint: str | None
    targets: tuple[RollbackTarget, ...]


@dataclass(frozen=True, slots=True)
class RestoreMetadata:
    instant: str
    rollbacks: tuple[RollbackMetadata, ...]
