"""A day as a new partition of a table whose days are in directories of slashes."""

import pytest

from eventide_core.action.write.partition_forms import check_partition_forms
from eventide_core.errors import UnsupportedTableError

SLASHED = ("2026/01/05", "2026/01/06")


@pytest.mark.parametrize(
    ("written", "known"),
    [
        (("2026-01-05",), ()),
        (("2026-01-05",), ("2026-01-04",)),
        (("2026-01-05",), (*SLASHED, "2026-01-05")),
        (("2026/01/07",), SLASHED),
        (("north",), SLASHED),
        (("2026-01-05",), ("2026/01", "day=2026/01/05")),
    ],
)
def test_other_forms_are_not_in_doubt(written: tuple[str, ...], known: tuple[str, ...]) -> None:
    check_partition_forms(written, known)


def test_a_day_that_hudi_may_have_put_elsewhere_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="'2026-01-05' in a table with partitions such as '2026/01/05'"):
        check_partition_forms(("north", "2026-01-05"), SLASHED)
