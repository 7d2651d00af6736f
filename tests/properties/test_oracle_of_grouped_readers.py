"""The oracle of the test kit tells apart what readers see that group log blocks by instant (I11)."""

from collections.abc import Mapping, Sequence

import pytest

from eventide.testing.histories import delete, put
from eventide.testing.inspection.checks import check_order_of_instants
from eventide.testing.oracle import Change, Oracle, Order

COMMITS = (
    (put("k", 10, "k1"), put("a", 10, "a1")),
    (put("k", 20, "k2"), put("a", 100, "first")),
    (delete("k", 30), put("a", 100, "corrected")),
)


class CarriesTwice(Oracle):
    """Compactions that also carry the deletes that left-overs keep."""

    def _carried(
        self,
        base: Mapping[str, Change],
        taken: Sequence[tuple[Change, ...]],
        early: Sequence[tuple[Change, ...]],
        left: Sequence[tuple[Change, ...]],
    ) -> tuple[Change, ...]:
        return super()._carried(base, [*taken, *early], [], left)


@pytest.mark.parametrize("kind", [Oracle, CarriesTwice])
def test_a_second_copy_of_a_delete_moves_the_rows_of_its_left_over(kind: type[Oracle]) -> None:
    oracle = kind(Order.EVENT_TIME)
    for number, changes in enumerate(COMMITS):
        oracle.commit(str(number), changes)
    check_order_of_instants(oracle, [Order.EVENT_TIME])
    oracle.compact(50, {"part=a": 0}, threshold_ms=50)
    assert [row[3] for row in oracle.snapshot()] == ["corrected"]
    if kind is Oracle:
        check_order_of_instants(oracle, [Order.EVENT_TIME])
    else:
        with pytest.raises(AssertionError, match=r"groups log blocks by instant sees .*first.* instead of .*corrected"):
            check_order_of_instants(oracle, [Order.EVENT_TIME])
