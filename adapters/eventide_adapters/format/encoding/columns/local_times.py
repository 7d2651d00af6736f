"""Columns of local times as epoch milliseconds, by the rule of `eventide_core.table.records.local_time`."""

from datetime import tzinfo
from typing import Final

import numpy as np
import numpy.typing as npt

from eventide_core.table.records.local_time import DAY_MS, offsets_of_day

_FAR_MS: Final = (1 << 63) - 1 - 2 * DAY_MS  # a zone is less than a day from UTC


def epoch_ms_of_local(local_ms: npt.NDArray[np.int64], zone: tzinfo) -> npt.NDArray[np.int64]:
    """Local times in milliseconds as epoch milliseconds. Asks the zone for each day once."""
    local_ms = np.clip(local_ms, -_FAR_MS, _FAR_MS)
    days, of_day = np.unique(np.floor_divide(local_ms, DAY_MS), return_inverse=True)
    offsets = [offsets_of_day(day, zone) for day in days.tolist()]
    first = local_ms - np.array([day.first_ms for day in offsets], np.int64)[of_day]
    changes = np.array([_FAR_MS + DAY_MS if day.change_ms is None else day.change_ms for day in offsets], np.int64)[
        of_day
    ]
    last = local_ms - np.array([day.last_ms for day in offsets], np.int64)[of_day]
    return np.where(first < changes, first, np.maximum(changes, last))
