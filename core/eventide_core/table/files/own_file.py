"""The `version` of each file that eventide adds to a table, and that no other engine reads.

A file without one has version 1. Every eventide reads files of its own version and of earlier ones, and refuses later ones:
what it doesn't know of them may decide what counts.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from eventide_core.errors import UnsupportedTableError

VERSION: Final = 1


def encoded_own(document: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    return json.dumps({"version": VERSION, **document}, indent=indent, sort_keys=True).encode()


def decoded_own(data: bytes | str, path: str) -> dict[str, Any]:
    """The content of the file at `path`.

    Raises UnsupportedTableError for a later version, ValueError or RecursionError for anything but a JSON object.
    """
    content: Any = json.loads(data)
    if not isinstance(content, dict):
        raise ValueError(f"a JSON object was expected, not {str(content)[:20]}")
    document = cast("dict[str, Any]", content)
    version = document.pop("version", VERSION)
    if type(version) is not int or version < 1:
        raise ValueError(f"version {str(version)[:20]} was expected to be a number from 1 on")
    if version > VERSION:
        raise UnsupportedTableError(
            f"{path} has version {version}, but this eventide knows versions up to {VERSION}; use a newer eventide"
        )
    return document
