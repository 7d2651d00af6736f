"""A hook of mkdocs: the site has no source files, so links to them become the paths that they name."""

import re
from typing import Any

_TO_SOURCE = re.compile(r"\[(`[^`]+`)\]\((?:\.\./)+(?:core|adapters|spark_app|tests)/[^)]*\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _TO_SOURCE.sub(r"\1", markdown)
