"""What a savepoint keeps: the files of every slice as of its commit. Its tag is a name for users.

Hudi's metadata has no place for a tag, so it is the first line of the comments, which every engine keeps as they are:

    eventide.tag=end-of-day/2026-11-21
    what else was commented
    eventide.tag.exact=true

The last line is there for the view as of a watermark, if the footers of its base files show it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.errors import ConfigError
from eventide_core.table.files.file_name import path_in

_TAG = "eventide.tag="
_EXACT = "eventide.tag.exact="
_TAG_NAME = re.compile(r"\w[\w.:/+@-]{0,127}")


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Hudi's HoodieSavepointMetadata.

    `files` are names of base and log files by partition: the files of every slice as of the commit. `saved_by` names who
    made it, `eventide` or what another engine's user stated. `saved_at_ms` is epoch milliseconds. `comments` are for people,
    but for the lines of a tag.
    """

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
        """The comments without the lines that belong to the tag."""
        if self.tag is None:
            return self.comments
        return "\n".join(line for line in self.comments.split("\n")[1:] if not line.startswith(_EXACT))

    @property
    def is_exact(self) -> bool | None:
        """Whether the tagged view holds nothing at or after its watermark; None if it is unknown, or no such view."""
        last = self.comments.rpartition("\n")[2]
        return None if self.tag is None else {f"{_EXACT}true": True, f"{_EXACT}false": False}.get(last)


def remarks_with_exactness(remarks: str, *, is_exact: bool | None) -> str:
    """The remarks of a tag that keeps the view as of a watermark."""
    if is_exact is None:
        return remarks
    exactness = f"{_EXACT}{str(is_exact).lower()}"
    return f"{remarks}\n{exactness}" if remarks else exactness


def comments_with_tag(tag: str | None, remarks: str) -> str:
    """The comments with the tag. Raises ConfigError for an invalid tag, and for remarks that look like a tag."""
    if remarks.lstrip().startswith(_TAG):
        raise ConfigError(f"comments may not begin with {_TAG}: state the tag as such instead")
    if tag is None:
        return remarks
    if not _TAG_NAME.fullmatch(tag):
        raise ConfigError(
            f"tag {tag[:200]!r}: use up to 128 letters, digits and any of . : / + @ - _, with a letter or digit first"
        )
    return f"{_TAG}{tag}\n{remarks}" if remarks else f"{_TAG}{tag}"
