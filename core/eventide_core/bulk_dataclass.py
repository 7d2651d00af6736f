"""Frozen dataclasses of which a large table has a hundred thousand.

Python takes five times as long to make a frozen dataclass as another one, because it sets each field by a call. So
these are frozen to type checkers, which refuse an assignment to a field, and not to Python.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

__all__ = ["bulk_dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass as bulk_dataclass
else:

    def bulk_dataclass(*, frozen: bool, slots: bool):
        assert frozen, "a value of the core is frozen"
        return dataclass(slots=slots, unsafe_hash=True)
