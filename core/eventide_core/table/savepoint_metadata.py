"""What a savepoint keeps: the files of every slice as of its commit."""

from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.table.file_name import path_in


@dataclass(frozen=True, slots=True)
class SavepointMetadata:
    """Hudi's HoodieSavepointMetadata: names of files by partition. `saved_at_ms` is epoch milliseconds."""

    saved_by: str
    saved_at_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(path_in(partition, name) for partition, names in self.files.items() for name in names)
