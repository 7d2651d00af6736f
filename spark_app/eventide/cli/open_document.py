"""The JSON document on stdout that has been begun, so that an error becomes a part of it."""

from contextvars import ContextVar
from typing import Final

UNFINISHED: Final[ContextVar[str]] = ContextVar("unfinished", default="{")
"""What stands before the error in the document: its beginning, or the end of the rows that were printed."""
