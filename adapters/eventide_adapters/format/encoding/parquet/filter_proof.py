"""What follows from a filter, as Arrow proves it: it simplifies the filter by what is known of some rows.

Nothing here knows the form of a filter. If Arrow can't simplify it, nothing follows, and every row is read.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_VALUES_MAX: Final = 1000


def excluded(
    guarantees: Sequence[pc.Expression | None], row_filter: pc.Expression, schema: pa.Schema
) -> tuple[bool, ...]:
    """For each condition that some rows meet, if the filter keeps none of them. None isn't a condition."""
    from pyarrow import dataset, fs

    file_format, nowhere = dataset.ParquetFileFormat(), fs.LocalFileSystem()
    fragments = [  # no file is opened: a fragment's name is its number
        file_format.make_fragment(str(number), nowhere, partition_expression=guarantee)
        for number, guarantee in enumerate(guarantees)
    ]
    whole = dataset.FileSystemDataset(fragments, schema, file_format, nowhere)
    try:
        kept = {int(fragment.path) for fragment in whole.get_fragments(filter=row_filter)}
    except pa.ArrowInvalid:
        return (False,) * len(fragments)  # a value of a condition does not fit the filter; the rows will show
    return tuple(number not in kept for number in range(len(fragments)))


def values_of(row_filter: pc.Expression, name: str, schema: pa.Schema) -> tuple[Any, ...] | None:
    """Values of a column of texts or whole numbers; the filter keeps no row with another one. None if there may be more.

    The filter's own literals are tried: Arrow has to exclude everything below, between and above them, and null.
    """
    place = schema.get_field_index(name)
    if place < 0:
        return None
    kind = schema.field(place).type
    is_text = pa.types.is_string(kind)
    if not (is_text or pa.types.is_signed_integer(kind)):
        return None
    wanted: Any = str if is_text else int
    # UTF-8 has the order of Python's texts.
    values: list[Any] = sorted({value for value in _literals(row_filter) if type(value) is wanted})
    if not 0 < len(values) <= _VALUES_MAX:
        return None
    field = pc.field(name)
    try:
        scalars: list[Any] = [pa.scalar(value, kind) for value in values]
    except (pa.ArrowInvalid, OverflowError):
        return None
    between = [(field > low) & (field < high) for low, high in pairwise(scalars)]
    gaps = [field < scalars[0], *between, field > scalars[-1], field.is_null()]
    return tuple(values) if all(excluded(gaps, row_filter, schema)) else None


def _literals(row_filter: pc.Expression) -> Iterator[Any]:
    """The literals of an expression, and maybe others: the values of the record batch that Arrow serializes it as."""
    try:
        reduced: Any = row_filter.__reduce__()
        batch = pa.ipc.open_file(reduced[1][0]).get_batch(0)
    except (pa.ArrowException, IndexError, TypeError, ValueError):
        return
    for column in batch.columns:
        yield from _leaves(column.to_pylist())


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    else:
        yield value
