"""How an extra of eventide is added to this installation, for messages about a package that is missing."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def install_command(extra: str) -> str:
    """What adds the packages of an extra: from the checkout or wheel that eventide was installed from, if that is there."""
    return f"pip install '{_origin()}[{extra}]'"


def _origin() -> str:
    """A directory or wheel as pip recorded it (PEP 610). It records nothing for a package from a registry."""
    # Imported here: it takes longer to import than the rest of a start, and only a message needs it.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution("eventide").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    recorded: Any = json.loads(text or "{}")
    url = urlsplit(str(recorded.get("url", "")))
    path = unquote(url.path)
    return path if url.scheme == "file" and Path(path).exists() else "eventide"
