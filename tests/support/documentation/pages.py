"""Runs the code of the documentation as it is.

Reads a page from top to bottom. Of its fenced blocks,
1. `python` runs in this process, with one namespace for all blocks of a page;
2. `sh` are commands, and `console` commands after `$ ` with their output. In the output, dots stand for anything, and the
   width of a table doesn't matter;
3. `cron`, and `yaml` with `command` or `args` in it, contain commands of eventide, which also run;
4. a block below a line that has only a file's name in backticks and a colon is the content of that file.

Blocks without a language are text. Paths of the examples are in a directory of the test, and a store's address is a
test server's. `commands` runs the commands.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.documentation.commands import Commands

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^`([\w.-]+)`:$")
_COMMAND = re.compile(r"^\$? ?eventide \w", re.MULTILINE)
# A path of an example, but not one that follows a bucket or another directory.
_EXAMPLE_DIRECTORY = re.compile(r"(?<![\w/.-])/(lake|var)(?=/)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `file` is set if it is the content of a file."""

    line: int
    language: str
    text: str
    file: str | None


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page in order."""
    for found in _FENCE.finditer(page):
        above = page[: found.start()].rstrip().rpartition("\n")[2]
        named = _NAMED.fullmatch(above)
        indent = len(found[1])
        text = "".join(line[indent:] for line in found[3].splitlines(keepends=True))
        yield Block(page.count("\n", 0, found.start()) + 1, found[2], text, named[1] if named else None)


@dataclass(slots=True)
class DocumentedPage:
    """Runs one page in `directory`. `addresses` are replacements; `before` and `after` run around each block."""

    path: Path
    directory: Path
    commands: Commands
    namespace: dict[str, Any]
    addresses: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None

    def run(self) -> int:
        """Runs the page. Returns how many blocks were run or written."""
        count = 0
        for block in blocks(self._here(self.path.read_text(encoding="utf-8"))):
            self.before()
            count += self._run(block)
            self.after()
        return count

    def _here(self, text: str) -> str:
        for documented, real in self.addresses.items():
            text = text.replace(documented, real)
        return _EXAMPLE_DIRECTORY.sub(rf"{self.directory}/\1", text)

    def _run(self, block: Block) -> bool:
        place = f"{self.path.name}:{block.line}"
        if block.file is not None:
            (self.directory / block.file).write_text(block.text, encoding="utf-8")
            return True
        match block.language:
            case "python":
                exec(compile("\n" * block.line + block.text, str(self.path), "exec"), self.namespace)
            case "sh":
                self.commands.script(block.text, place)
            case "console":
                self.commands.session(block.text, place)
            case "cron":
                for line in block.text.splitlines():
                    self.commands.script(line.split(maxsplit=5)[5], place)
            case "yaml":
                for words in _commands_in(yaml.safe_load(block.text)):
                    self.commands.run(words, place)
            case _:
                assert not _COMMAND.search(block.text), (
                    f"{place}: commands that nobody runs: say which language they are"
                )
                return False
        return True


def _commands_in(document: Any) -> Iterator[list[str]]:
    """The lists of arguments under `command` or `args` that begin with eventide."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in ("command", "args") and value[0] == "eventide":
                yield value
            else:
                yield from _commands_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from _commands_in(value)
