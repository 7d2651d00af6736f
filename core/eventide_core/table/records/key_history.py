"""The history of one key in a slice."""

from dataclasses import dataclass

from eventide_core.table.records.record_order import Version


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """All versions of one record key, `key`, in a slice.

    `base` is that in the base file, None if it has none; `merged` are those in the log files to merge, `left_overs` those in
    the others; both in reader order. Positions number the versions of the history, so that two versions of equal ordering
    are distinguished. `early` are the versions in the log files to leave over that are merged anyway: an exact cut merges
    everything before T.
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
