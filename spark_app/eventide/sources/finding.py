"""Finds the sources that words name: files, directories, globs, URIs of every storage, and `-` for standard input.

1. `-` is copied to a temporary file, because a source may be read twice.
2. A file is taken as it is, also if its name contains characters of a glob.
3. Of a directory, the files directly in it are taken, by name. Those beginning with `_` or `.`, such as `_SUCCESS`, are left
   out, and so are those with an unknown ending, which are reported.
4. A glob has `*`, `?` and `[...]` within a name, and `**` for any number of directories.

Files of one directory or glob have one format. Standard input without a stated format is recognized by its first bytes.
"""

import fnmatch
import glob
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, Final

from eventide.sources.source import KNOWN_ENDINGS, Format, Source, format_by_name, known_format
from eventide.sources.streams import decompressed
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.secret_texts import without_secrets
from eventide_core.config import EMPTY_VARIABLE, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import FileInfo, Storage

STDIN: Final = "-"
_STDIN_NAME: Final = "standard input"
_MAGIC: Final = re.compile(r"[*?[]")
_COPY_BYTES: Final = 1 << 20


class SourceFinder:
    """`stated` is the format of all sources if the user states one; `say` reports what is left out.

    Temporary files live as long as `living`.
    """

    def __init__(self, options: Options, stated: Format | None, living: ExitStack, say: Callable[[str], None]) -> None:
        self._options = options
        self._stated = stated
        self._living = living
        self._say = say

    def find(self, words: Sequence[str], stdin: BinaryIO) -> tuple[Source, ...]:
        """All sources, in the order of the words. Raises ConfigError for a word that names none."""
        if words.count(STDIN) > 1:
            raise ConfigError("standard input (-) is named twice, and can be read only once: name it once")
        sources: list[Source] = []
        for word in words:
            sources += [self._spooled(_STDIN_NAME, stdin)] if word == STDIN else self._named(word)
        return tuple(sources)

    def _spooled(self, name: str, stream: BinaryIO) -> Source:
        copy: Any = NamedTemporaryFile(prefix="eventide_")  # noqa: SIM115 - lives as long as `living`
        self._living.enter_context(copy)
        shutil.copyfileobj(stream, copy, _COPY_BYTES)
        copy.flush()
        start: Any = partial(open, copy.name, "rb")
        return Source(name, self._stated or _recognized(start), start)

    def _named(self, word: str) -> list[Source]:
        if not word.strip():
            raise ConfigError(f"a source has no name {EMPTY_VARIABLE}")
        parent, _, name = word.rstrip("/").rpartition("/")
        if "://" in word and parent.endswith("/"):
            parent, name = word, ""  # a bucket or a namenode alone
        try:
            directory = parent or ("/" if word.startswith("/") else ".")
            storage = open_storage(directory, self._options, what="directory")
        except ConfigError as error:
            raise ConfigError(f"source {without_secrets(word, ())!r} cannot be opened: {error}") from None
        if isinstance(storage, LocalStorage):
            return self._local(word, Path(storage.root.removeprefix("file://")) / name)
        entry = storage.stat(name)
        if entry is not None and not entry.is_directory:
            return [self._file(word, partial(storage.open_input, name))]
        if entry is None and _MAGIC.search(word):
            return self._glob_of_store(word)
        if entry is None:
            raise ConfigError(f"source {word!r} does not exist: correct its name")
        inside = [info for info in storage.list(name) if not info.is_directory]
        base = word.rstrip("/")
        return self._together(word, [(f"{base}/{_name(i)}", partial(storage.open_input, i.path)) for i in inside])

    def _local(self, word: str, path: Path) -> list[Source]:
        try:
            mode = path.stat().st_mode
        except OSError as error:
            if not _MAGIC.search(word) or not isinstance(error, FileNotFoundError):
                reason = "does not exist: correct its name" if isinstance(error, FileNotFoundError) else error.strerror
                raise ConfigError(f"source {word!r} {reason}") from None
            names = sorted(name for name in glob.glob(str(path), recursive=True) if Path(name).is_file())
            return self._together(word, [(name, partial(open, name, "rb")) for name in names], is_glob=True)
        if stat.S_ISDIR(mode):
            inside = sorted(file for file in path.iterdir() if file.is_file())
            return self._together(word, [(str(file), partial(open, file, "rb")) for file in inside])
        if stat.S_ISREG(mode):
            return [self._file(word, partial(open, path, "rb"))]
        with path.open("rb") as pipe:
            return [self._spooled(word, pipe)]

    def _glob_of_store(self, word: str) -> list[Source]:
        scheme, _, rest = word.partition("://")
        authority, *segments = rest.split("/")
        fixed = next(number for number, segment in enumerate(segments) if _MAGIC.search(segment))
        base = "/".join([f"{scheme}://{authority}", *segments[:fixed]])
        storage = open_storage(base, self._options)
        paths = sorted({info.path for info in _matching(storage, "", segments[fixed:])})
        named = [(f"{base}/{path}", partial(storage.open_input, path)) for path in paths]
        return self._together(word, named, is_glob=True)

    def _file(self, name: str, start: Callable[[], Any]) -> Source:
        return Source(name, self._stated or known_format(name), start)

    def _together(
        self, word: str, files: Sequence[tuple[str, Callable[[], Any]]], *, is_glob: bool = False
    ) -> list[Source]:
        """The files of one directory or glob."""
        files = [(name, start) for name, start in files if not name.rpartition("/")[2].startswith(("_", "."))]
        if is_glob and not files:
            raise ConfigError(f"source {word!r} matches no file: correct the pattern")
        if self._stated is not None or is_glob:
            sources = [self._file(name, start) for name, start in files]
        else:
            sources = [Source(n, ending, start) for n, start in files if (ending := format_by_name(n)) is not None]
            left_out = [name.rpartition("/")[2] for name, _ in files if format_by_name(name) is None]
            if left_out and sources:
                more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
                self._say(f"left out of {word}: {left_out[0]}{more} (unknown ending)")
        if not sources:
            raise ConfigError(f"source {word!r}: no file in it ends in {KNOWN_ENDINGS}")
        by_format = {source.format: source.name for source in reversed(sources)}
        if len(by_format) > 1:
            examples = ", ".join(f"{name} ({kind})" for kind, name in sorted(by_format.items()))
            cure = (
                "let the pattern end in one ending" if is_glob else f"name one of them, as in {word.rstrip('/')}/*.csv"
            )
            raise ConfigError(f"source {word!r} has files of several formats: {examples}; {cure}")
        return sources


def _name(info: FileInfo) -> str:
    return info.path.rpartition("/")[2]


def _matching(storage: Storage, directory: str, segments: Sequence[str]) -> Iterator[FileInfo]:
    """The files below a directory whose path has these segments."""
    first, *rest = segments
    for info in storage.list(directory):
        name = _name(info)
        if first == "**":
            if info.is_directory and not name.startswith((".", "_")):
                yield from _matching(storage, info.path, segments)
        elif fnmatch.fnmatchcase(name, first):
            if info.is_directory and rest:
                yield from _matching(storage, info.path, rest)
            elif not info.is_directory and not rest:
                yield info
    if first == "**" and rest:
        yield from _matching(storage, directory, rest)


def _recognized(start: Callable[[], BinaryIO]) -> Format:
    """The format by the first bytes: Parquet's own, an object of JSON, or else CSV."""
    with start() as raw:
        if raw.read(4) == b"PAR1":
            return Format.PARQUET
        raw.seek(0)
        head: bytes = decompressed(raw, _STDIN_NAME).read(4096)
    return Format.JSON if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[") else Format.CSV
