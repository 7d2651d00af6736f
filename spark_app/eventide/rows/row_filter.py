"""Turns a query's `filter` into an Arrow expression, and selects the slices to read.

A slice is left out if the filter is false or null for every row of its partition. A partition's path states the values of
the fields that a key generator writes unchanged: texts and whole numbers, but not times, which it formats. The slices of a
path that does not state a value, such as the path for null, are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from eventide_core.errors import EventideError, InvalidFilterError
from eventide_core.table.files.slice_read import ChangeRead, QueryPlan
from eventide_core.table.settings.key_format import KeyFormat
from eventide_core.table.settings.table_config import TableConfig

Filter: TypeAlias = str | pc.Expression | Sequence[Any]
"""A condition as in SQL's WHERE, an Arrow expression, or a list of `(column, operator, value)`, all of which must hold."""

_NO_VALUE = ("", "default", "__HIVE_DEFAULT_PARTITION__")


def filter_expression(row_filter: Filter | None, schema: pa.Schema) -> pc.Expression | None:
    """The expression that is true for the rows to keep. Raises InvalidFilterError."""
    if row_filter is None or isinstance(row_filter, pc.Expression):
        found = row_filter
    elif isinstance(row_filter, str):
        # Imported here: most queries have no SQL filter, and importing the parser is slow.
        from eventide.rows.filter_expression import parse_filter

        return parse_filter(row_filter, schema)
    else:
        from pyarrow.parquet import filters_to_expression

        conditions: Any = row_filter
        try:
            found = filters_to_expression(list(conditions))
        except (TypeError, ValueError) as error:
            raise InvalidFilterError(
                f"filter {row_filter!r} is not a list of (column, operator, value): {error}"
            ) from None
    if found is not None:
        try:
            schema.empty_table().filter(found)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, TypeError) as error:
            raise InvalidFilterError(f"filter {found} does not fit the table: {error}") from None
    return found


def pruned(plan: QueryPlan, row_filter: pc.Expression, schema: pa.Schema, config: TableConfig) -> QueryPlan:
    """The plan without slices of partitions in which the filter keeps no row."""
    if not plan.slices or any(isinstance(one, ChangeRead) for one in plan.slices):
        return plan
    try:
        # Only partitions matter here, so it makes no difference whether keys name their fields.
        key_format = KeyFormat.of(config, "", has_bare_keys=True)
    except EventideError:
        return plan  # its key generator is unknown to eventide
    fields = _plain_fields(key_format, schema)
    if not any(fields):
        return plan
    guarantees = {path: _guarantee(path, fields, key_format) for path in {one.partition for one in plan.slices}}
    kept = _kept(guarantees, row_filter, schema)
    return QueryPlan(tuple(one for one in plan.slices if one.partition in kept), plan.shape)


def _plain_fields(key_format: KeyFormat, schema: pa.Schema) -> tuple[pa.Field[Any] | None, ...]:
    """For each directory of a partition path, the field whose value it is; None if it is not the unchanged value."""
    plain = {field.name: field for field in schema if pa.types.is_string(field.type) or pa.types.is_integer(field.type)}
    return tuple(None if name in key_format.time_fields else plain.get(name) for name in key_format.partition_fields)


def _guarantee(path: str, fields: Sequence[pa.Field[Any] | None], key_format: KeyFormat) -> pc.Expression | None:
    """The condition on its rows that a partition path states; None if it states none."""
    parts = path.split("/")
    if len(parts) != len(fields):
        return None  # a value contains a slash
    found: pc.Expression | None = None
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
        said = pc.field(field.name) == scalar
        found = said if found is None else found & said
    return found


def _kept(
    guarantees: Mapping[str, pc.Expression | None], row_filter: pc.Expression, schema: pa.Schema
) -> frozenset[str]:
    """The partitions in which the filter may keep a row, as Arrow's datasets decide. Opens no file."""
    from pyarrow import dataset, fs

    file_format, nowhere = dataset.ParquetFileFormat(), fs.LocalFileSystem()
    paths = sorted(guarantees)
    fragments = [
        file_format.make_fragment(str(number), nowhere, partition_expression=guarantees[path])
        for number, path in enumerate(paths)
    ]
    found = dataset.FileSystemDataset(fragments, schema, file_format, nowhere).get_fragments(filter=row_filter)
    return frozenset(paths[int(fragment.path)] for fragment in found)
