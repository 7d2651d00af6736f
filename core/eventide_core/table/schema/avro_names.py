"""The column names that Avro allows: letters, digits and underscores, and no digit first.

Java's Avro also accepts letters beyond ASCII. Other readers of Hudi tables don't, so eventide writes only what Avro's
specification allows.
"""

import re
from collections.abc import Iterable
from typing import Final

from eventide_core.cure import Cure
from eventide_core.errors import InvalidColumnNameError

MASK: Final = "__"
"""What Hudi puts in the place of a character that a name cannot hold."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID_FIRST: Final = re.compile(r"\A[^A-Za-z_]")
_INVALID: Final = re.compile(r"[^A-Za-z0-9_]")


def is_avro_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def sanitized(name: str) -> str:
    """The name with each invalid character replaced, as in `HoodieAvroUtils.sanitizeName`."""
    return _INVALID.sub(MASK, _INVALID_FIRST.sub(MASK, name)) or MASK


def sanitized_names(names: Iterable[str]) -> dict[str, str]:
    """The sanitized name of each name, in order. Raises InvalidColumnNameError if two names become equal."""
    valid: dict[str, str] = {}
    origins: dict[str, str] = {}
    for name in names:
        new = valid[name] = sanitized(name)
        origin = origins.setdefault(new, name)
        if origin != name:
            raise InvalidColumnNameError(
                f"columns {origin!r} and {name!r} would both be named {new!r}: rename one of them"
            )
    return valid


def refuse_invalid_names(
    names: Iterable[str],
    cure: str = f"Rename the columns, or use {Cure.argument('sanitize')}, which gives them the names in parentheses",
) -> None:
    """Raises InvalidColumnNameError, which names the invalid columns, their sanitized names and the cure."""
    invalid = [name for name in names if not is_avro_name(name)]
    if invalid:
        listed = ", ".join(f"{name!r} ({sanitized(name)})" for name in invalid[:5])
        more = f", and {len(invalid) - 5} more" if len(invalid) > 5 else ""
        raise InvalidColumnNameError(
            f"Avro, and so Hudi, cannot hold these column names: {listed}{more}. A name consists of letters, digits and "
            f"underscores, and begins with no digit. {cure}"
        )
