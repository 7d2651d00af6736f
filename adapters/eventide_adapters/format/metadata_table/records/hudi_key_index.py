"""Looks keys up in the record index of the metadata table: `ports.KeyIndex`.

A key's latest version counts: the record of the last log block that has the key, otherwise the base file's. A DELETE
block removes the versions before it. Of each HFile, only the blocks are read that may have one of the wanted keys.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from eventide_adapters.format.metadata_table.records.merged import RecordSource
from eventide_adapters.format.metadata_table.records.records import decode_value, file_group_number, record_index_place
from eventide_core.errors import RecordDecodeError
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.settings.metadata_table import REBUILD_CURE, RECORD_INDEX

Sources = Callable[[FileSlice, Collection[bytes] | None], tuple[Sequence[RecordSource], Mapping[bytes, int]]]
"""The sources of a slice's records with the wanted keys, of all if None, and the deleted keys. Picklable."""

_GLOBAL_FILE_ID: Final = re.compile(r"record-index-(\d+)-\d+")


@dataclass(frozen=True, slots=True)
class HudiKeyIndex:
    """`slices` are the slices of the record index, by their numbers; `sources` reads one of them."""

    slices: tuple[FileSlice, ...]
    sources: Sources

    @classmethod
    def of(cls, slices: tuple[FileSlice, ...], sources: Sources) -> "HudiKeyIndex | None":
        """None if these aren't slices, or belong to an index that isn't over the whole table."""
        matches = [_GLOBAL_FILE_ID.fullmatch(file_slice.file_id) for file_slice in slices]
        if not slices or [match and int(match[1]) for match in matches] != list(range(len(slices))):
            return None
        return cls(slices, sources)

    @property
    def file_groups(self) -> int:
        return len(self.slices)

    def number_of(self, key: str) -> int:
        return file_group_number(key, self.file_groups)

    def locate(self, number: int, keys: Collection[str]) -> Mapping[str, tuple[str, str]]:
        """See `ports.KeyIndex`. Raises CorruptBaseFileError, CorruptLogBlockError, MissingFileError, RecordDecodeError."""
        return self._located(number, frozenset(key.encode() for key in keys))

    def keys_of(self, number: int, groups: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], frozenset[str]]:
        """See `ports.KeyIndex`. Raises the same errors as `locate`."""
        keys_of_group: dict[tuple[str, str], set[str]] = {group: set() for group in groups}
        for key, group in self._located(number, None).items():
            if group in keys_of_group:
                keys_of_group[group].add(key)
        return {group: frozenset(keys) for group, keys in keys_of_group.items()}

    def _located(self, number: int, wanted: frozenset[bytes] | None) -> Mapping[str, tuple[str, str]]:
        """The partition and file ID of each of the wanted keys, of all keys if None."""
        sources, deleted = self.sources(self.slices[number], wanted)
        latest: dict[bytes, tuple[int, bytes]] = {}
        for age, source in enumerate(sources):
            for key, value in source.entries:
                if age >= deleted.get(key, 0):
                    latest[key] = (age, value)
        decoded: dict[tuple[int, bytes], tuple[str, str]] = {}  # the keys of a write to a file group share one value
        for versioned in latest.values():
            if versioned not in decoded:
                age, value = versioned
                record = decode_value(value, sources[age].schema, sources[age].place)
                try:
                    decoded[versioned] = record_index_place(record)
                except (KeyError, TypeError, AttributeError) as error:
                    raise RecordDecodeError(
                        f"{sources[age].place}: a record of {RECORD_INDEX} names no file group ({error!r}); "
                        f"{REBUILD_CURE}"
                    ) from error
        return {key.decode(): decoded[versioned] for key, versioned in latest.items()}
