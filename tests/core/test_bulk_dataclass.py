"""Values of which a table has many are frozen to type checkers, and are otherwise like all others."""

import pickle
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from eventide_core.bulk_dataclass import bulk_dataclass


@bulk_dataclass(frozen=True, slots=True)
class _Bulk:
    name: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class _Single:
    name: str
    size: int = 0


def test_a_value_compares_hashes_and_prints_as_a_frozen_dataclass() -> None:
    bulk, single = _Bulk("a", 1), _Single("a", 1)
    assert (bulk == _Bulk("a", 1), bulk == _Bulk("a")) == (True, False)
    assert hash(bulk) == hash(single)
    assert repr(bulk) == repr(single).replace("_Single", "_Bulk")
    assert replace(bulk, size=2) == _Bulk("a", 2)
    assert pickle.loads(pickle.dumps(bulk)) == bulk
    assert not hasattr(bulk, "__dict__")


def test_type_checkers_refuse_to_assign_a_field() -> None:
    bulk, single = _Bulk("a"), _Single("a")
    with pytest.raises(FrozenInstanceError):
        single.size = 1  # type: ignore[misc]
    # Python does not refuse this one. The type checkers do, or they would report the comment as unused.
    bulk.size = 1  # type: ignore[misc]
    assert bulk.size == 1
