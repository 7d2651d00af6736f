"""The names that a table's columns have in its files, by the numbers of Hudi's internal schemas (internal_schema.py).

A base file has the schema that its commit states, or else the one of its instant; a log block has the one of the instant
in its header, wherever the block is: a left-over of a compaction keeps its blocks. So Hudi reads them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.schema.avro_schema import META_FIELDS
from eventide_core.table.schema.internal_schema import SchemaVersion, parse_version, unstable_names

_T = TypeVar("_T")
_OF_NO_COLUMN: Final = " "
"""Before the name of a field in a file that the table no longer has as a column: no column's name begins so."""

_LAST: Final = "9" * 20
_CURE: Final = (
    "eventide reads key, ordering, partition and event-time columns, fields of nested columns, and tables that capture "
    "changes by name: let Hudi compact or cluster the whole table, so that no file has the old name, and clean the old "
    "file slices"
)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of one file or log block.

    `sources` are their names in it, by the names with which they are read; a column without one is not in it. `foreign` are
    the names that columns of the table have only in other files.
    """

    sources: Mapping[str, str]
    foreign: frozenset[str]

    def is_same(self, name: str) -> bool:
        """Whether the column has its name in the file, too."""
        return name in META_FIELDS or self.sources.get(name) == name

    def source(self, name: str) -> str | None:
        """The name in the file."""
        return name if name in META_FIELDS else self.sources.get(name)

    def by_name_read(self, written: Mapping[str, _T], place: str) -> dict[str, _T]:
        """What was found of the file's columns, by the names with which they are read.

        Raises UnsupportedTableError if the file has a column that only other files should have: that is not its schema.
        """
        self.require(written, place)
        names = [name for name in META_FIELDS if name in written]
        own = {name: written[source] for name, source in self.sources.items() if source in written}
        return {name: written[name] for name in names} | own

    def names_read(self, written: Sequence[str], place: str) -> list[str]:
        """The names with which the fields of a file are read, in their order. Raises UnsupportedTableError, too."""
        self.require(written, place)
        names = {source: name for name, source in self.sources.items()}
        return [name if name in META_FIELDS else names.get(name, f"{_OF_NO_COLUMN}{name}") for name in written]

    def require(self, written: Iterable[str], place: str) -> None:
        """Raises UnsupportedTableError if these are not columns of this schema."""
        for name in written:
            if name in self.foreign:
                raise UnsupportedTableError(
                    f"{place} has a column {name!r}, which the table's schema of its instant does not have, and columns "
                    "were renamed or dropped since; let Hudi compact or cluster the whole table with "
                    "hoodie.schema.on.read.enable=true"
                )


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """The columns of files whose schema had other names than the one that is read.

    `current` is the version with which the table is read. `in_files` has the columns of files by the number of their
    version: None if they have the names that are read; a text states why such a file can't be read. `of_commits` are the
    versions that commits state of their base files, where they differ from their instants'.
    """

    current: SchemaVersion
    in_files: Mapping[int, FileColumns | str | None]
    of_commits: Mapping[str, int]

    @classmethod
    def of(
        cls, versions: Iterable[SchemaVersion], stated: Mapping[str, str], by_name: Iterable[str], as_of: str | None
    ) -> "ColumnNames | None":
        """The names in a table as read now, or as of an instant. None if names alone identify columns.

        `stated` are the internal schemas that commits state, by instant. `by_name` are the fields that are read by name.
        """
        known = {version.version: version for version in versions}
        if not known:
            return None
        current = known[_greatest_up_to(known, as_of or _LAST) or min(known)]
        columns = frozenset(name.partition(".")[0] for name in by_name)
        in_files = {number: _in_files(version, current, known.values(), columns) for number, version in known.items()}
        if not any(in_files.values()):
            return None
        numbers = {
            text: parse_version(text, f"latest_schema of the commit {time}").version for time, text in stated.items()
        }
        own = {time: numbers[text] for time, text in stated.items()}
        return cls(current, in_files, {t: n for t, n in own.items() if n in known and n != _greatest_up_to(known, t)})

    def require_readable(self, instants: Iterable[str]) -> None:
        """Raises UnsupportedTableError if files whose names have these instants can't be read."""
        oldest = _greatest_up_to(self.in_files, min(instants, default="0")) or 0
        for number, columns in self.in_files.items():
            if number >= oldest and isinstance(columns, str):
                raise UnsupportedTableError(columns)

    def in_base(self, instant: str, place: str) -> FileColumns | None:
        """The columns of a base file; None if they have the names with which they are read."""
        return self._of(self.of_commits.get(instant), instant, place)

    def in_block(self, instant: str, place: str) -> FileColumns | None:
        """The columns of a log block; None if they have the names with which they are read."""
        return self._of(None, instant, place)

    def _of(self, stated: int | None, instant: str, place: str) -> FileColumns | None:
        number = _greatest_up_to(self.in_files, instant) if stated is None else stated
        if number is None:
            raise UnsupportedTableError(
                f"{place}: no internal schema of Hudi is as old, and columns were renamed or dropped since; let Hudi "
                "compact or cluster the whole table with hoodie.schema.on.read.enable=true"
            )
        columns = self.in_files[number]
        if isinstance(columns, str):
            raise UnsupportedTableError(f"{place}: {columns}")
        return columns


def _in_files(
    version: SchemaVersion, current: SchemaVersion, versions: Iterable[SchemaVersion], by_name: frozenset[str]
) -> FileColumns | str | None:
    unstable = unstable_names(version, current)
    for name, reason in unstable.items():
        if "." in name or name in by_name:
            return f"{reason}; {_CURE}"
    if not unstable:
        return None
    then, now = version.columns, current.columns
    sources = {name: then[number] for number, name in now.items() if number in then}
    names = frozenset(name for other in versions for name in other.columns.values())
    return FileColumns(sources, names.difference(then.values(), META_FIELDS))


def _greatest_up_to(versions: Iterable[int], instant: str) -> int | None:
    """The number of the version of an instant: the greatest one up to there."""
    return max((number for number in versions if number <= int(instant)), default=None)
