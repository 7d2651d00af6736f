"""Turns a query's `filter` into an Arrow expression, and selects the slices to read.

1. A slice is left out if the filter is false or null for every row of its partition. A partition's path states the values
   of the fields that a key generator writes unchanged: texts and whole numbers, but not times, which it formats. The slices
   of a path that does not state a value, such as the path for null, are kept. So are all slices of a table whose index may
   leave a key in its partition when the record's fields name another one.
2. A slice is left out if the filter names keys, and all of them are of other buckets (action/query/key_buckets.py).
3. A slice is left out if the filter names keys, and the record index has them in others (`rows/reader.py` asks it).
4. What is left out of the other slices, their files decide when they are read (format/slice/merge/sought.py).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField
from eventide_adapters.format.encoding.parquet.filter_proof import excluded, values_of
from eventide_core.action.query.key_buckets import combinations, kept_groups
from eventide_core.errors import EventideError, InvalidFilterError
from eventide_core.table.files.slice_read import ChangeRead, KeyForms, QueryPlan, SliceRead
from eventide_core.table.property_keys import KEY_GENERATORS
from eventide_core.table.schema.avro_schema import RECORD_KEY
from eventide_core.table.settings.key_format import KeyFormat
from eventide_core.table.settings.table_config import TableConfig

Filter: TypeAlias = str | pc.Expression | Sequence[Any]
"""A condition as in SQL's WHERE, an Arrow expression, or a list of `(column, operator, value)`, all of which must hold."""

_CAST_OPTIONS = re.compile(r", \{to_type=(.*?), allow_int_overflow[^}]*\}")
_NO_VALUE = ("", "default", "__HIVE_DEFAULT_PARTITION__")


def filter_expression(row_filter: Filter | None, schema: pa.Schema) -> pc.Expression | None:
    """The expression that is true for the rows to keep. Raises InvalidFilterError."""
    if row_filter is None or isinstance(row_filter, pc.Expression):
        expression = row_filter
    elif isinstance(row_filter, str):
        # Imported here: most queries have no SQL filter, and importing the parser is slow.
        from eventide.rows.value_expression import parse_filter

        return parse_filter(row_filter, schema)
    else:
        from pyarrow.parquet import filters_to_expression

        conditions: Any = row_filter
        try:
            expression = filters_to_expression(list(conditions))
            _refuse_letters(conditions)
        except (TypeError, ValueError) as error:
            raise InvalidFilterError(
                f"filter {row_filter!r} is not a list of (column, operator, value): {error}"
            ) from None
    if expression is not None:
        try:
            schema.empty_table().filter(expression)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, TypeError) as error:
            raise InvalidFilterError(f"filter {shown(expression)} does not fit the table: {error}") from None
    return expression


def shown(expression: pc.Expression) -> str:
    """The expression without Arrow's own words for how it computes: `cast(a as double)`, `divide(a, b)`."""
    return _CAST_OPTIONS.sub(r" as \1", str(expression)).replace("_checked(", "(")


def _refuse_letters(conditions: Any) -> None:
    """Raises ValueError for `in` with one text, which Arrow takes for its letters."""
    for one in conditions:
        match one:
            case (str(), "in" | "not in" as operator, str() | bytes() as value):
                raise ValueError(f"{value!r} is one text, and {operator} needs a list")
            case [*_]:
                _refuse_letters(one)


@dataclass(frozen=True, slots=True)
class FilteredSlices:
    """The slices to read for a filter.

    `slices` are the plan's that may have a row that the filter keeps, in their order. `named` are the record keys
    that the filter names, each with all of its spellings; None: it keeps rows with other keys, too.
    """

    slices: tuple[SliceRead, ...]
    named: tuple[KeyForms, ...] | None = None

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The record keys in each form that they may have."""
        return None if self.named is None else tuple(key for forms in self.named for key in forms)


def selected(
    plan: QueryPlan, row_filter: pc.Expression, schema: pa.Schema, config: TableConfig, *, is_by_path: bool
) -> FilteredSlices:
    """The plan's slices without the slices of partitions and buckets in which the filter keeps no row.

    `is_by_path`: each row is in the partition that its fields name.
    """
    if not plan.slices or any(isinstance(one, ChangeRead) for one in plan.slices):
        return FilteredSlices(plan.slices)
    try:
        # Where Hudi's versions differ, a key may be bare or name its field: both are looked for.
        key_format = KeyFormat.of(config, "", has_bare_keys=True)
    except EventideError:
        return FilteredSlices(plan.slices)  # its key generator is unknown to eventide
    slices, fields = plan.slices, _plain_fields(key_format, schema)
    if is_by_path and any(fields):
        paths = sorted({one.partition for one in slices})
        guarantees = [_guarantee(path, fields, key_format) for path in paths]
        gone = dict(zip(paths, excluded(guarantees, row_filter, schema), strict=True))
        slices = tuple(one for one in slices if not gone[one.partition])
    values = _values_of_fields(key_format, row_filter, schema)
    keys = values_of(row_filter, RECORD_KEY, schema)
    may_name_field = KeyFormat.of(config, "", has_bare_keys=False).names_key_fields
    is_bare = not (key_format.names_key_fields or may_name_field)
    states_form = any(key in config.properties for key in KEY_GENERATORS)
    if keys is None:
        named = _record_keys(values, key_format, is_bare=is_bare and states_form)
    else:
        named = tuple((key,) for key in keys)
    if keys is not None and len(key_format.key_fields) == 1 and is_bare:
        values.setdefault(key_format.key_fields[0], keys)
    kept = kept_groups(config, {one.file_id for one in plan.slices}, values)
    return FilteredSlices(slices if kept is None else tuple(one for one in slices if one.file_id in kept), named)


def _values_of_fields(
    key_format: KeyFormat, row_filter: pc.Expression, schema: pa.Schema
) -> dict[str, tuple[str, ...]]:
    """The texts of the key fields whose values the filter names."""
    by_field = {name: values_of(row_filter, name, schema) for name in key_format.key_fields}
    return {name: tuple(map(str, values)) for name, values in by_field.items() if values is not None}


def _record_keys(
    values: Mapping[str, Collection[str]], key_format: KeyFormat, *, is_bare: bool
) -> tuple[KeyForms, ...] | None:
    """The record keys of these values of the key fields, in each form that they may have."""
    names = key_format.key_fields
    if any(name not in values for name in names) or any("" in part for part in values.values()):
        return None  # Hudi has a word of its own for an empty value
    chosen = combinations(values[name] for name in names)
    if chosen is None or is_bare:
        return chosen
    named = (",".join(f"{name}:{one}" for name, one in zip(names, ones, strict=True)) for ones in chosen)
    return tuple((text, *ones) if len(names) == 1 else (text,) for text, ones in zip(named, chosen, strict=True))


def _plain_fields(key_format: KeyFormat, schema: pa.Schema) -> tuple[ArrowField | None, ...]:
    """For each directory of a partition path, the field whose value it is; None if it is not the unchanged value."""
    plain = {field.name: field for field in schema if pa.types.is_string(field.type) or pa.types.is_integer(field.type)}
    return tuple(None if name in key_format.time_fields else plain.get(name) for name in key_format.partition_fields)


def _guarantee(path: str, fields: Sequence[ArrowField | None], key_format: KeyFormat) -> pc.Expression | None:
    """The condition on its rows that a partition path states; None if it states none."""
    parts = path.split("/")
    if len(parts) != len(fields):
        return None  # a value contains a slash
    condition: pc.Expression | None = None
    for part, field in zip(parts, fields, strict=True):
        if field is None:
            continue
        text = part.removeprefix(f"{field.name}=") if key_format.is_hive_style else part
        value = unquote(text) if key_format.is_url_encoded else text
        if value in _NO_VALUE:
            continue
        try:
            scalar = pa.scalar(int(value) if pa.types.is_integer(field.type) else value, field.type)
        except (ValueError, OverflowError, pa.ArrowInvalid):
            continue
        guarantee = pc.field(field.name) == scalar
        condition = guarantee if condition is None else condition & guarantee
    return condition
