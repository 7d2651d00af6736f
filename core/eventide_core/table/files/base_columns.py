"""The columns of a base file, by the instant in its name."""

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.records.column_names import FileColumns
from eventide_core.table.records.record_shape import RecordShape


def columns_in_base(shape: RecordShape, path: str) -> FileColumns | None:
    """The columns of a base file; None if they have the names of the schema."""
    if shape.column_names is None:
        return None
    name = BaseFileName.parse(path.rpartition("/")[2])
    if name is None:
        raise UnsupportedTableError(f"base file {path}: its name states no instant, so its columns can't be known")
    return shape.column_names.in_base(name.instant, f"base file {path}")
