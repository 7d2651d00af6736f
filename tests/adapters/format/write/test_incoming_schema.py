"""How columns of records fit a table's, and how they change it."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from eventide_adapters.format.encoding.avro.from_arrow import avro_schema_of
from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.write.incoming_schema import conform, evolved_schema
from eventide_core.errors import InvalidColumnNameError, InvalidRecordError
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.write_shape import SchemaRules
from support.values.columns import schema_of

COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("n", pa.int32()),
    pa.field("share", pa.float32()),
    pa.field("at", pa.timestamp("us", tz="UTC")),
]
SCHEMA = avro_schema_of("t", pa.schema(COLUMNS))
MERGE = SchemaRules(adds_columns=True, nulls_missing=True)


def evolved(**columns: Any) -> pa.Schema:
    given: list[pa.Field[Any]] = [
        pa.field("id", pa.string()),
        *(pa.field(name, kind) for name, kind in columns.items()),
    ]
    return arrow_schema(evolved_schema(SCHEMA, pa.schema(given), "t", MERGE))


def test_columns_that_fit_leave_the_schema_as_it_stands() -> None:
    assert (
        evolved_schema(SCHEMA, schema_of(at=pa.timestamp("ms", tz="UTC"), id=pa.string(), n=pa.int16()), "t", MERGE)
        == SCHEMA
    )


def test_a_wider_column_widens_the_tables() -> None:
    wider = evolved(n=pa.int64(), share=pa.float64())
    assert (wider.field("n").type, wider.field("share").type) == (pa.int64(), pa.float64())
    assert evolved(n=pa.float64()).field("n").type == pa.float64()


def test_a_wider_column_leaves_the_tables_as_it_is_unless_it_may_change() -> None:
    wider = pa.table({"id": ["a"], "n": [2**40], "share": [0.1]}).schema
    assert evolved_schema(SCHEMA, wider, "t", SchemaRules(nulls_missing=True)) == SCHEMA
    rows = conform(pa.table({"id": ["a"], "n": [7], "share": [0.1]}), arrow_schema(SCHEMA))
    assert rows.schema.types[:3] == [pa.string(), pa.int32(), pa.float32()]


def test_a_new_column_comes_last_and_may_be_null() -> None:
    more: list[pa.Field[Any]] = [pa.field("id", pa.string()), pa.field("more", pa.int64(), nullable=False)]
    grown = evolved_schema(SCHEMA, pa.schema(more), "t", MERGE)
    assert grown.parsed["fields"][-1] == {"name": "more", "type": ["null", "long"], "default": None}
    assert grown.parsed["fields"][:-1] == SCHEMA.parsed["fields"]


def test_hudis_own_columns_are_no_new_ones() -> None:
    assert evolved(_hoodie_commit_time=pa.string()).names == ["id", "n", "share", "at"]


def test_a_missing_column_is_null_where_it_may_be() -> None:
    rows = conform(pa.table({"id": ["a"]}), arrow_schema(SCHEMA))
    assert rows.to_pylist() == [{"id": "a", "n": None, "share": None, "at": None}]
    with pytest.raises(InvalidRecordError, match="without the column 'id'"):
        evolved_schema(SCHEMA, pa.schema([pa.field("n", pa.int32())]), "t", MERGE)


def test_a_value_or_a_null_that_does_not_fit_is_named() -> None:
    with pytest.raises(InvalidRecordError, match="row 2: column 'id' is null"):
        conform(pa.table({"id": pa.array(["a", "b", None])}), arrow_schema(SCHEMA))
    with pytest.raises(InvalidRecordError, match="column 'n' of type string does not fit the table's int32"):
        conform(pa.table({"id": ["a"], "n": ["many"]}), arrow_schema(SCHEMA))


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pa.timestamp("us"), pa.int64()),
        (pa.date32(), pa.int32()),
        (pa.int64(), pa.timestamp("us")),
        (pa.int32(), pa.date32()),
    ],
)
def test_a_time_is_no_number_and_a_number_no_time(given: pa.DataType, kind: pa.DataType) -> None:
    rows = pa.table({"at": pa.array([1], given)})
    with pytest.raises(
        InvalidRecordError, match=r"column 'at' of type .* does not fit the table's .*: nothing says in which"
    ):
        conform(rows, pa.schema([("at", kind)]))


@pytest.mark.parametrize(
    ("kind_of", "value"),
    [
        (lambda kind: pa.list_(kind), [1]),
        (lambda kind: pa.struct([("of", kind)]), {"of": 1}),
        (lambda kind: pa.map_(pa.string(), kind), [("of", 1)]),
    ],
    ids=["list", "struct", "map"],
)
def test_nor_within_a_nested_column(kind_of: Callable[[pa.DataType], pa.DataType], value: object) -> None:
    rows = pa.table({"at": pa.array([value], kind_of(pa.timestamp("us")))})
    with pytest.raises(InvalidRecordError, match="of column 'at' of type timestamp"):
        conform(rows, pa.schema([("at", kind_of(pa.int64()))]))


LOCAL, MOMENT = pa.timestamp("us"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("given", "kind", "cure"),
    [
        (LOCAL, MOMENT, "assume_timezone"),
        (pa.timestamp("ns"), MOMENT, "tz_localize"),
        (pa.date32(), MOMENT, "assume_timezone"),
        (MOMENT, LOCAL, "local_timestamp"),
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ms"), "TIMESTAMP_NTZ"),
    ],
    ids=str,
)
@pytest.mark.parametrize("way", ["rows", "schema"])
@pytest.mark.parametrize("depth", ["", "list", "struct", "map"])
def test_a_time_without_a_zone_is_no_moment_and_a_moment_no_local_time(
    given: pa.DataType, kind: pa.DataType, cure: str, way: str, depth: str
) -> None:
    """In a write of rows, and where the types alone are known, as of a DataFrame of Spark."""
    nested: dict[str, Callable[[pa.DataType], pa.DataType]] = {
        "": lambda own: own,
        "list": pa.list_,
        "struct": lambda own: pa.struct([("of", own)]),
        "map": lambda own: pa.map_(pa.string(), own),
    }
    own, table = nested[depth](given), nested[depth](kind)
    message = rf"column 'at' of type .*does not fit the table's .*: nothing says in which zone; .*{cure}"
    known = evolved_schema(None, schema_of(at=table), "t", SchemaRules())
    with pytest.raises(InvalidRecordError, match=message):
        _ = (
            conform(pa.table({"at": pa.array([None], own)}), pa.schema([("at", table)]))
            if way == "rows"
            else evolved_schema(known, schema_of(at=own), "t", SchemaRules())
        )


def test_casts_that_need_no_zone_remain() -> None:
    """A date is the first moment of a local day, and a moment at midnight of its own zone is that zone's date."""
    day = pa.array([0], pa.date32())
    assert conform(pa.table({"at": day}), pa.schema([("at", LOCAL)])).column("at").cast(pa.int64()).to_pylist() == [0]
    midnight = pa.array([0], MOMENT)
    assert (
        conform(pa.table({"at": midnight}), pa.schema([("at", pa.date32())])).column("at").to_pylist()
        == day.to_pylist()
    )
    berlin = pa.array([0], pa.timestamp("ms", "Europe/Berlin"))
    assert conform(pa.table({"at": berlin}), pa.schema([("at", MOMENT)])).column("at").cast(pa.int64()).to_pylist() == [
        0
    ]


def test_a_table_without_a_schema_gets_that_of_its_first_records() -> None:
    columns: list[pa.Field[Any]] = [
        pa.field("_hoodie_record_key", pa.string()),
        pa.field("n", pa.int32(), nullable=False),
    ]
    first = evolved_schema(None, pa.schema(columns), "my trips", SchemaRules()).parsed
    assert (first["namespace"], first["name"]) == ("hoodie.my__trips", "my__trips_record")
    assert first["fields"] == [{"name": "n", "type": ["null", "int"], "default": None}]


def _refused(incoming: list[tuple[str, Any]], *, rules: SchemaRules | None = None, schema: AvroSchema = SCHEMA) -> str:
    columns: list[pa.Field[Any]] = [pa.field(name, kind) for name, kind in incoming]
    with pytest.raises((InvalidRecordError, InvalidColumnNameError)) as refused:
        evolved_schema(schema, pa.schema(columns), "t", rules or SchemaRules())
    return str(refused.value)


WHOLE: list[tuple[str, Any]] = [(field.name, field.type) for field in COLUMNS]


def test_a_column_that_the_table_lacks_is_refused_with_the_nearest_name() -> None:
    assert "no column 'shares'; did you mean 'share'?" in _refused([*WHOLE, ("shares", pa.float32())])
    assert "its columns are id, n, share, at." in _refused([*WHOLE, ("comment", pa.string())])


def test_a_column_that_the_records_lack_is_refused_unless_it_may_become_null() -> None:
    assert "without the column 'share'" in _refused([one for one in WHOLE if one[0] != "share"])
    only_id = pa.schema([pa.field("id", pa.string())])
    assert evolved_schema(SCHEMA, only_id, "t", SchemaRules(nulls_missing=True)) == SCHEMA


@pytest.mark.parametrize("rules", [SchemaRules(), MERGE])
def test_names_that_differ_only_in_case_are_always_refused(rules: SchemaRules) -> None:
    renamed = [("Share" if name == "share" else name, kind) for name, kind in WHOLE]
    assert "rename it to 'share'" in _refused(renamed, rules=rules)
    assert "differ only in case" in _refused([*WHOLE, ("more", pa.int64()), ("More", pa.int64())], rules=rules)
    assert "two columns 'more'" in _refused([*WHOLE, ("more", pa.int64()), ("more", pa.int64())], rules=rules)


def test_a_nested_field_is_neither_dropped_nor_nulled() -> None:
    nested = pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.int64())])
    kinds = {"one": nested, "many": pa.list_(nested), "named": pa.map_(pa.string(), nested)}
    schema = avro_schema_of("t", pa.schema([pa.field(name, kind) for name, kind in kinds.items()]))
    more = pa.struct([*nested, pa.field("c", pa.int64())])
    less = pa.struct([pa.field("a", pa.int64())])
    for name, wrap in (("one", more), ("many", pa.list_(more)), ("named", pa.map_(pa.string(), more))):
        assert "has the field 'c'" in _refused(list({**kinds, name: wrap}.items()), rules=MERGE, schema=schema)
    for name, wrap in (("one", less), ("many", pa.list_(less)), ("named", pa.map_(pa.string(), less))):
        assert ".b'" in _refused(list({**kinds, name: wrap}.items()), schema=schema)


def test_hudis_delete_marker_may_come_and_be_left_out() -> None:
    marked = evolved_schema(
        SCHEMA, pa.schema([*COLUMNS, pa.field("_hoodie_is_deleted", pa.bool_())]), "t", SchemaRules()
    )
    assert arrow_schema(marked).names[-1] == "_hoodie_is_deleted"
    assert evolved_schema(marked, pa.schema(COLUMNS), "t", SchemaRules()) == marked
