"""What a savepoint keeps: the files of every slice as of its commit. Its tag is a name for users.

Hudi's metadata has no place for a tag, so it is the first line of the comments, which every engine keeps as they are:

    eventide.tag=end-of-day/2026-11-21
    what else was commented
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.errors import ConfigError
from eventide_core.table.file_name import path_in

_TAG = "eventide.tag="
_TAG_NAME = re.compile(r"\w[\w.:/+@-]{0,127}")


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Hudi's HoodieSavepointMetadata: names of files by partition. `saved_at_ms` is epoch milliseconds."""

    saved_by: str
    saved_at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(path_in(partition, name) for partition, names in self.files.items() for name in names)

    @property
    def tag(self) -> str | None:
        first = self.comments.partition("\n")[0].strip()
        return first.removeprefix(_TAG) if first.startswith(_TAG) else None

    @property
    def remarks(self) -> str:
        """The comments without the tag."""
        return self.comments if self.tag is None else self.comments.partition("\n")[2]


def comments_with_tag(tag: str | None, remarks: str) -> str:
    """The comments with the tag. Raises ConfigError for an invalid tag, and for remarks that look like a tag."""
    if remarks.lstrip().startswith(_TAG):
        raise ConfigError(f"comments may not begin with {_TAG}: use --tag instead")
    if tag is None:
        return remarks
    if not _TAG_NAME.fullmatch(tag):
        raise ConfigError(
            f"tag {tag[:200]!r}: use up to 128 letters, digits and any of . : / + @ - _, with a letter or digit first"
        )
    return f"{_TAG}{tag}\n{remarks}" if remarks else f"{_TAG}{tag}"
