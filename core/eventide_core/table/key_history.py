"""The history of one key in a slice."""

from dataclasses import dataclass

from eventide_core.table.record_order import Version


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """All versions of one key in a slice: the base's, those of the log files to merge, those of the log files to leave.

    Positions number the versions of the history, so that two versions of equal ordering are distinguished. `early` are
    those of the log files to leave that are merged anyway: an exact cut takes whatever lies before T.
    """

    key: str
    base: Version | None
    merged: tuple[Version, ...]
    left_overs: tuple[Version, ...]
    early: tuple[Version, ...] = ()

    @property
    def taken(self) -> tuple[Version, ...]:
        """The versions that are merged into the base, in reader order."""
        return self.merged + self.early
