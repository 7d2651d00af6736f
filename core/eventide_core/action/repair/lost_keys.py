"""The keys that lost or damaged files take with them."""

from dataclasses import dataclass
from enum import StrEnum


class KeySource(StrEnum):
    """The source of the keys that a file slice had."""

    RECORD_INDEX = "record_index"
    PREVIOUS_SLICE = "previous_slice"


@dataclass(frozen=True, slots=True)
class LostKeys:
    """The keys that a file group no longer shows because `paths` are missing or damaged, sorted.

    `commits` wrote these files, as far as active commits name them. If `source` is None, the keys are unknown, and
    `keys` is empty. With PREVIOUS_SLICE, the rows as of that slice can still be read there. A lost log file may also have
    had later versions of keys that are still shown, and deletes: no list has these.
    """

    partition: str
    file_id: str
    paths: tuple[str, ...]
    commits: tuple[str, ...]
    source: KeySource | None
    keys: tuple[str, ...]
