"""The contract of mergers accepts good ones and says what is wrong with bad ones."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eventide.testing.merger_contract import MergerContract, values_of
from eventide_core.errors import RecordMergerError
from support.values.mergers import Joined, Longest, with_words

pytestmark = pytest.mark.slow

COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("ms", pa.timestamp("ms", "UTC")),
    pa.field("word", pa.string()),
    pa.field("tags", pa.list_(pa.field("element", pa.float64()))),
]
SCHEMA = pa.schema(COLUMNS)


class TestLongest(MergerContract):
    merger = "support.values.mergers:Longest"
    schema = SCHEMA


class TestBracketed(MergerContract):
    merger = "support.values.mergers:Bracketed"
    schema = SCHEMA


class FalselyAssociative(Joined):
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        texts: list[Any] = [pc.coalesce(rows["word"], pa.scalar("")) for rows in (older, newer)]
        join: Any = pc.binary_join_element_wise
        return with_words(newer, join("(", *texts, ")", ""))


class Numbered(Longest):
    """Says how many pairs came before."""

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:  # noqa: ARG002
        return with_words(newer, pa.array([str(number) for number in range(len(newer))]))


class Counting(Longest):
    calls = 0

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:  # noqa: ARG002
        Counting.calls += 1
        return with_words(newer, pa.array([str(Counting.calls)] * len(newer)))


def _contract(merger: type) -> MergerContract:
    module = "support.values.mergers" if merger.__module__ == "support.values.mergers" else __name__
    members = {"merger": f"{module}:{merger.__name__}", "schema": SCHEMA}
    made: type[MergerContract] = type("Contract", (MergerContract,), members)
    return made()


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module, under the name by which the contract loads its mergers."""
    import sys

    module = type(sys)(__name__)
    for one in (FalselyAssociative, Numbered, Counting):
        setattr(module, one.__name__, one)
    monkeypatch.setitem(sys.modules, __name__, module)


@pytest.mark.parametrize(
    ("merger", "check", "message"),
    [
        (FalselyAssociative, MergerContract.test_it_is_associative_if_it_says_so, "the order of merging shows"),
        (Numbered, MergerContract.test_a_record_depends_on_its_pair_alone, "than of each pair alone"),
        (Counting, MergerContract.test_the_same_pairs_give_the_same_records, "is not deterministic"),
    ],
)
def test_what_breaks_the_contract_is_said(merger: type, check: Callable[[MergerContract], None], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(_contract(merger))


def test_a_result_that_does_not_fit_is_said() -> None:
    from support.values.mergers import Short

    with pytest.raises(RecordMergerError, match="rows for"):
        MergerContract.test_its_results_fit_the_table(_contract(Short))


def test_a_type_without_values_is_named() -> None:
    with pytest.raises(NotImplementedError, match=r"no values of duration\[s\]: override"):
        values_of(pa.field("d", pa.duration("s")))
