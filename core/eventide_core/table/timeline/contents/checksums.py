"""The checksums that a commit of eventide records: of the files that it wrote, and of its own extra metadata.

    eventide.checksums   JSON: {"files": {path: checksum}, "extra": {key of the extra metadata: checksum},
                                "settings": {key of hoodie.properties: value}, "options": {key of it: value}}

The settings are those by which records are keyed, ordered and partitioned, as they were when the commit was made; the
options are those that the table has for its writers (`TableConfig.recorded_settings`).
`files/checksum` defines a checksum. Hudi keeps the extra metadata of a commit, and ignores this key.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core.errors import CorruptTimelineError
from eventide_core.table.files.checksum import RunningChecksum
from eventide_core.table.property_keys import IDENTITY_SETTINGS
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat

CHECKSUMS_KEY: Final = "eventide.checksums"
_PARTS: Final = ("files", "extra", "settings", "options")


def with_checksums(
    extra_metadata: Mapping[str, str], stats: Iterable[WriteStat], settings: Mapping[str, str]
) -> dict[str, str]:
    """The extra metadata of a commit with the checksums of itself and of the files of these write stats; and `settings`."""
    recorded = {
        "files": {stat.path: stat.checksum for stat in stats if stat.checksum is not None},
        "extra": {key: _of_text(text) for key, text in extra_metadata.items()},
        "settings": {key: value for key, value in settings.items() if key in IDENTITY_SETTINGS},
        "options": {key: value for key, value in settings.items() if key not in IDENTITY_SETTINGS},
    }
    return {**extra_metadata, CHECKSUMS_KEY: json.dumps(recorded, separators=(",", ":"), sort_keys=True)}


@dataclass(frozen=True, slots=True)
class Checksums:
    """What a commit records to be compared with later; each part is empty if it records none.

    `files` are the checksums of files by path, `extra` of its extra metadata by key. `settings` and `options` are
    the values of the table's settings by key, not checksums.
    """

    files: Mapping[str, str]
    extra: Mapping[str, str]
    settings: Mapping[str, str]
    options: Mapping[str, str]

    @classmethod
    def of(cls, commit: CommitMetadata) -> "Checksums":
        """Empty if the commit records none. Raises CorruptTimelineError if the text is invalid."""
        text = commit.extra_metadata.get(CHECKSUMS_KEY)
        if text is None:
            return cls({}, {}, {}, {})
        try:
            recorded = json.loads(text)
            recorded = {"settings": {}, "options": {}} | recorded  # eventide did not record them before
            parts = [{str(key): str(value) for key, value in recorded[part].items()} for part in _PARTS]
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            raise CorruptTimelineError(
                f"a commit has {CHECKSUMS_KEY}={text[:80]!r}, which eventide doesn't write; restore it from a copy"
            ) from None
        return cls(*parts)

    def changed_keys(self, commit: CommitMetadata) -> tuple[str, ...]:
        """The keys of the commit's extra metadata that are missing or have another text than was recorded."""
        extra = commit.extra_metadata
        return tuple(key for key, known in self.extra.items() if key not in extra or _of_text(extra[key]) != known)


def _of_text(text: str) -> str:
    checksum = RunningChecksum()
    checksum.add(text.encode("utf-8", "surrogatepass"))
    return str(checksum)
