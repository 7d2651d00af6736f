"""The contract of a user-defined merger (`eventide.record.mergers`), as tests for pytest.

    class TestSumOfAmounts(MergerContract):
        merger = "mergers:SumOfAmounts"
        schema = pa.schema([pa.field("trip", pa.string()), pa.field("amount", pa.int64())])

Hypothesis draws records of `schema`, with nulls in nullable columns and, where values are compared, equal ones. A failure
shows the records, as few as possible, for which a promise does not hold:

1. The result fits: a record for each pair, of the same key, with the columns, types and nullability of the table.
2. A record depends on its pair alone. eventide merges any number of pairs at once, in any order, in several processes.
3. The same pairs give the same records.
4. If `is_associative` is declared, it does not matter which two of three versions are merged first. Readers merge log files
   with each other and then with the base file, and a compaction of a part of them changes that order.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField
from eventide_adapters.format.slice.merge.record_mergers import described, merge_rows
from eventide_core.table.records.custom_merger import CustomMerger

Record: TypeAlias = dict[str, Any]

_META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_KEY = "_hoodie_record_key"
_SETTINGS = settings(
    max_examples=50,
    deadline=None,
    # Without the explanation, which takes longer than all the rest.
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.differing_executors],
)


class MergerContract:
    """Inherit from it, and set `merger` (`module:Class`) and `schema`, the table's columns without Hudi's meta columns.

    Override `values` for a column whose values the merger restricts.
    """

    merger: ClassVar[str]
    schema: ClassVar[pa.Schema]

    def values(self, field: ArrowField) -> st.SearchStrategy[Any]:
        """The values of a column. Raises NotImplementedError for a type that it does not know."""
        return values_of(field)

    @_SETTINGS
    @given(st.data())
    def test_its_results_fit_the_table(self, data: st.DataObject) -> None:
        older, newer = self._versions(data, 2)
        merge_rows(self._described, older, newer)  # raises RecordMergerError

    @_SETTINGS
    @given(st.data())
    def test_a_record_depends_on_its_pair_alone(self, data: st.DataObject) -> None:
        older, newer = self._versions(data, 2)
        at_once = self._merged(older, newer)
        alone = [self._merged(older.slice(n, 1), newer.slice(n, 1)) for n in range(len(newer))]
        assert at_once == [record for records in alone for record in records], (
            f"{self.merger} makes other records of all pairs at once than of each pair alone"
        )

    @_SETTINGS
    @given(st.data())
    def test_the_same_pairs_give_the_same_records(self, data: st.DataObject) -> None:
        older, newer = self._versions(data, 2)
        assert self._merged(older, newer) == self._merged(older, newer), f"{self.merger} is not deterministic"

    @_SETTINGS
    @given(st.data())
    def test_it_is_associative_if_it_says_so(self, data: st.DataObject) -> None:
        merger = self._described
        if not merger.is_associative:
            return
        first, second, third = self._versions(data, 3)
        left = merge_rows(merger, merge_rows(merger, first, second), third).to_pylist()
        right = merge_rows(merger, first, merge_rows(merger, second, third)).to_pylist()
        assert _comparable(left) == _comparable(right), (
            f"{self.merger} declares is_associative, but the order of merging shows: set it to False"
        )

    @property
    def _described(self) -> CustomMerger:
        return described(self.merger)

    def _merged(self, older: pa.Table, newer: pa.Table) -> list[Record]:
        return _comparable(merge_rows(self._described, older, newer).to_pylist())

    def _versions(self, data: st.DataObject, count: int) -> list[pa.Table]:
        """Versions of the same keys, the oldest first."""
        keys = data.draw(st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True), "keys")
        return [self._records(data, keys, number) for number in range(count)]

    def _records(self, data: st.DataObject, keys: Sequence[int], number: int) -> pa.Table:
        columns = [pa.field(name, pa.string()) for name in _META]
        meta = {
            "_hoodie_commit_time": f"2026010100000000{number}",
            "_hoodie_partition_path": "",
            "_hoodie_file_name": "",
        }
        records = [
            {**meta, "_hoodie_commit_seqno": str(key), _KEY: str(key)}
            | {field.name: data.draw(self.values(field), field.name) for field in self.schema}
            for key in keys
        ]
        return pa.Table.from_pylist(records, pa.schema([*columns, *self.schema]))


def values_of(field: ArrowField) -> st.SearchStrategy[Any]:
    """Values of the column's type, few enough for equal ones; null too if it is nullable. Raises NotImplementedError."""
    values = _of_type(field.type)
    return st.none() | values if field.nullable else values


def _of_type(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_integer(kind):
        return st.integers(-3, 100)
    if pa.types.is_floating(kind):
        return st.floats(-100, 100, width=32)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return st.text("ab", max_size=3)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return st.binary(max_size=3)
    if pa.types.is_date(kind):
        return st.dates(date(1960, 1, 1), date(2060, 1, 1))
    if pa.types.is_timestamp(kind):
        times = st.datetimes(datetime(1960, 1, 1), datetime(2060, 1, 1))  # noqa: DTZ001
        return times.map(lambda time: time.replace(microsecond=0, tzinfo=UTC if kind.tz else None))
    if pa.types.is_decimal(kind):
        return st.integers(-99, 99).map(lambda number: Decimal(number).scaleb(-kind.scale))
    if pa.types.is_list(kind):
        return st.lists(values_of(kind.value_field), max_size=3)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values_of(field) for field in kind})
    raise NotImplementedError(f"no values of {kind}: override `values` of your MergerContract")


def _comparable(records: list[Record]) -> list[Record]:
    """The records with one not-a-number for all."""
    return [{name: "NaN" if value != value else value for name, value in record.items()} for record in records]
