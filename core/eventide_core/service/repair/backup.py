"""The backup of a repair, from which an interrupted repair is completed and a completed one is undone.

All of a repair lies in `.hoodie/.backup/<instant>/`, where no reader looks. Order of writes:

1. `before/<n>` a copy of each file that will change, and `after/<n>` the new content of each that will be written.
2. `repair.json` the changes, with size and hash of each file before and after. From here on the repair happens.
3. The changes, in order. Each compares the file with both states first: one in its state after the repair has been changed
   already; one in neither state was changed by someone else, and the repair stops.
4. `applied`. A repair without it is completed by the next one, which leaves the files that others have changed or removed
   since to the plan that it makes itself: a process that was paused may put its `repair.json` after others repaired the
   table.
5. An undo writes `undoing`, changes every file back in reverse order by the same rule, and writes `undone`. A copy that
   replaced a broken link stays, and a link that was removed comes back if its target exists. If a compaction that a
   repair runs again fails, as its inputs turn out to be damaged, too, the repair is undone at once.

A repair that rebuilds the metadata table changes no other file, and has no undo: the old one is of no use. It writes
`rebuilt` after the rebuild. Without it, the next repair does the rebuild.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from eventide_core.action.repair.repairs import BACKUP_DIRECTORY, Change, Copying, Removal, Replacement
from eventide_core.errors import CorruptTimelineError, MissingFileError, RefusedError, UnsafePathError
from eventide_core.ports import Lease, Storage
from eventide_core.table.files.own_file import decoded_own, encoded_own
from eventide_core.table.settings.properties import PROPERTIES_PATH

_PLAN, _APPLIED, _UNDOING, _UNDONE, _REBUILT = "repair.json", "applied", "undoing", "undone", "rebuilt"
_PIECE_BYTES: Final = 8 * 1024 * 1024
_ABSENT: Final[Mapping[str, Any]] = {"exists": False}

Fingerprint = Mapping[str, Any]
"""`{"exists": False}`, `{"link": target}`, or `{"size": bytes, "sha256": hex digits}`."""


@dataclass(frozen=True, slots=True)
class BackupStep:
    """One change, as `repair.json` has it.

    `number` counts from 0, in the order of the changes, and names the copies `before/<number>` and `after/<number>`.
    `before` and `after` describe the file at the path of `change` as it was, and as it will be.
    """

    number: int
    change: Change
    before: Fingerprint
    after: Fingerprint


@dataclass(frozen=True, slots=True)
class RepairBackup:
    """The backup of the repair at `instant`."""

    storage: Storage
    instant: str

    @property
    def directory(self) -> str:
        return f"{BACKUP_DIRECTORY}/{self.instant}"

    @property
    def is_interrupted(self) -> bool:
        """Whether a repair or an undo has begun, and hasn't ended."""
        return self._has(_PLAN) and not self._has(_UNDONE if self.is_undoing else _APPLIED)

    @property
    def is_undoing(self) -> bool:
        return self._has(_UNDOING)

    @property
    def can_be_undone(self) -> bool:
        """Whether the repair can be undone.

        Not after a compaction ran again, whose files exist again and are whole, nor after the metadata table was rebuilt.
        """
        if not self._has(_PLAN) or self._has(_UNDONE):
            return False
        return not self.reruns and self._rebuilt_indexes is None

    @property
    def is_undone(self) -> bool:
        return self._has(_UNDONE)

    @property
    def changes_settings(self) -> bool:
        """Whether the repair changes hoodie.properties."""
        return self._has(_PLAN) and any(item["path"] == PROPERTIES_PATH for item in self._document()["changes"])

    @property
    def reruns(self) -> tuple[str, ...]:
        """The compactions that the repair runs again."""
        return tuple(self._document()["reruns"]) if self._has(_PLAN) else ()

    @property
    def indexes_to_rebuild(self) -> tuple[str, ...] | None:
        """The indexes with which the metadata table has still to be rebuilt; None if it has not to be."""
        return None if self._has(_REBUILT) else self._rebuilt_indexes

    def end_rebuild(self) -> None:
        self._put(_REBUILT, b"")

    def begin(
        self,
        changes: Sequence[Change],
        repairs: Sequence[Mapping[str, Any]],
        reruns: Sequence[str],
        lease: Lease,
        *,
        rebuilt_indexes: Sequence[str] | None = None,
    ) -> None:
        """Steps 1 and 2. `repairs` describes them for people, `reruns` are the compactions to run again."""
        steps = [self._prepared(number, change, lease) for number, change in enumerate(changes)]
        document = {
            "repairs": list(repairs),
            "reruns": list(reruns),
            "rebuilt_indexes": None if rebuilt_indexes is None else list(rebuilt_indexes),
            "changes": [_to_json(step) for step in steps],
        }
        lease.check()
        self._put(_PLAN, encoded_own(document, indent=1))

    def apply(self, lease: Lease) -> None:
        """Steps 3 and 4. Raises RefusedError if someone else changed a file."""
        for step in self._steps():
            now = self._fingerprint(step.change.path)
            if now != step.after:
                self._check_unchanged(step.change.path, now, (step.before,))
                lease.check()
                self._change(step)
        self._put(_APPLIED, b"")

    def complete(self, lease: Lease) -> None:
        """Steps 3 and 4 of an interrupted repair, for the files that are still as they were before it."""
        for step in self._steps():
            if self._fingerprint(step.change.path) == step.before:
                lease.check()
                self._change(step)
        self._put(_APPLIED, b"")

    def undo(self, lease: Lease, *, is_forced: bool = False) -> tuple[str, ...]:
        """Step 5, as far as it hasn't happened. The paths of the files that are as before.

        `is_forced` also brings back a file that has changed since. Otherwise, raises RefusedError.
        """
        self._put(_UNDOING, b"")
        steps = tuple(s for s in self._steps() if "link" not in s.before or isinstance(s.change, Removal))
        for step in reversed(steps):
            path = step.change.path
            now = self._fingerprint(path)
            if now == step.before:
                continue
            if not is_forced:
                self._check_unchanged(path, now, (step.after, _ABSENT))
            lease.check()
            if path == PROPERTIES_PATH and step.before != _ABSENT:
                self.storage.put(
                    path, self.storage.read(self._before(step.number))
                )  # without it, nothing can be opened
                continue
            self.storage.delete(path)
            if "link" in step.before:
                with suppress(MissingFileError, UnsafePathError):
                    self.storage.link_if_absent(step.before["link"], path, is_symbolic=True)
            elif step.before != _ABSENT:
                self.storage.copy_if_absent(self._before(step.number), path)
        self._put(_UNDONE, b"")
        return tuple(step.change.path for step in steps)

    def _prepared(self, number: int, change: Change, lease: Lease) -> BackupStep:
        before = self._fingerprint(change.path)
        if "size" in before:
            lease.check()
            try:
                self.storage.copy_if_absent(change.path, self._before(number))
            except MissingFileError:
                lease.check()  # else others have made this change meanwhile
                raise
        match change:
            case Removal():
                after: Fingerprint = _ABSENT
            case Replacement(_, data):
                lease.check()
                self._put(f"after/{number}", data)
                after = _fingerprint_of((data,))
            case Copying(_, source):
                after = self._fingerprint(source)
        return BackupStep(number, change, before, after)

    def _change(self, step: BackupStep) -> None:
        match step.change:
            case Removal(path):
                self.storage.delete(path)
            case Replacement(path, data):
                self.storage.put(path, data)
            case Copying(path, source):
                self.storage.delete(path)
                self.storage.copy_if_absent(source, path)

    def _check_unchanged(self, path: str, now: Fingerprint, expected: Iterable[Fingerprint]) -> None:
        if now not in tuple(expected):
            raise RefusedError(
                f"{path} has changed since the repair {self.instant} was planned; compare it with {self.directory}, then "
                f"remove {self.directory}/{_PLAN} to leave the file as it is"
            )

    @property
    def _rebuilt_indexes(self) -> tuple[str, ...] | None:
        indexes = self._document().get("rebuilt_indexes") if self._has(_PLAN) else None
        return None if indexes is None else tuple(indexes)

    def _steps(self) -> tuple[BackupStep, ...]:
        return tuple(self._step(number, item) for number, item in enumerate(self._document()["changes"]))

    def _document(self) -> dict[str, Any]:
        path = f"{self.directory}/{_PLAN}"
        try:
            document = decoded_own(self.storage.read(path), path)
            for item in document["changes"]:
                _ = item["path"], item["before"], item["after"], item["change"]
            _ = document["reruns"]
            return document
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CorruptTimelineError(
                f"{path} cannot be read: {error}; the files beside it are what it changed"
            ) from error

    def _step(self, number: int, item: Mapping[str, Any]) -> BackupStep:
        path, kind = item["path"], item["change"]
        change: Change
        if kind == "remove":
            change = Removal(path)
        elif kind == "write":
            change = Replacement(path, self.storage.read(f"{self.directory}/after/{number}"))
        elif kind == "copy":
            change = Copying(path, item["source"])
        else:
            raise ValueError(f"unknown change {kind!r}")
        return BackupStep(number, change, item["before"], item["after"])

    def _fingerprint(self, path: str) -> Fingerprint:
        directory, _, name = path.rpartition("/")
        entry = next((e for e in self.storage.list(directory) if e.path.rpartition("/")[2] == name), None)
        if entry is None:
            return _ABSENT
        if entry.link_target is not None:
            return {"link": entry.link_target}
        with self.storage.open_input(path) as stream:
            return _fingerprint_of(iter(lambda: stream.read(_PIECE_BYTES), b""))

    def _before(self, number: int) -> str:
        return f"{self.directory}/before/{number}"

    def _has(self, name: str) -> bool:
        return self.storage.stat(f"{self.directory}/{name}") is not None

    def _put(self, name: str, data: bytes) -> None:
        self.storage.put(f"{self.directory}/{name}", data)


def backups_of(storage: Storage) -> list[RepairBackup]:
    """The backups of the table's repairs, oldest first."""
    names = sorted(e.path.rpartition("/")[2] for e in storage.list(BACKUP_DIRECTORY) if e.is_directory)
    return [RepairBackup(storage, name) for name in names]


def _fingerprint_of(pieces: Iterable[bytes]) -> Fingerprint:
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return {"size": size, "sha256": digest.hexdigest()}


def _to_json(step: BackupStep) -> dict[str, Any]:
    kind = {Removal: "remove", Replacement: "write", Copying: "copy"}[type(step.change)]
    source = {"source": step.change.source} if isinstance(step.change, Copying) else {}
    return {"path": step.change.path, "change": kind, **source, "before": step.before, "after": step.after}
