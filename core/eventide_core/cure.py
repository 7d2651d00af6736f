"""What a user can do about an error or a finding, as a value.

Its text is the call, as a Python caller types it: `table.rollback("20261121093000000", force=True)`. Messages hold this
text wherever they pass: in exceptions, documents and notes, between processes. Whoever shows a message to others reads the
values back from it, and puts them into their words (`in_words`): the command line names its own commands.
"""

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

ArgumentValue = str | bool | tuple[str, ...]

_STATIC: Final = ("create", "recover_settings")  # methods that need no open table
PLACEHOLDERS: Final = ("instant", "uri")
"""The words that stand for a subject in documents, which know none."""

_TEXT: Final = re.compile(r'`(?:[Tt]able\.\w+\([^`]*\)|[a-z_]+=(?:True|"[A-Za-z]+"))`')


@dataclass(frozen=True, slots=True)
class Cure:
    """A method of `eventide.Table` to call; without a method, an argument to add to the call that failed.

    `method` is the method's name; None for an argument. `subject` is its only positional argument: an instant, or the
    location of a table that cannot be opened; in a document the word that stands for it; None if the method takes none.
    `arguments` are keyword arguments, each with its value.
    """

    method: str | None
    subject: str | None = None
    arguments: tuple[tuple[str, ArgumentValue], ...] = ()

    @classmethod
    def rollback(cls, instant: str, *, force: bool = False) -> "Cure":
        """Undoes an action. `force`: also where nothing shows whether its writer is alive."""
        return cls("rollback", instant, _forced(force))

    @classmethod
    def execute(cls, instant: str, *, force: bool = False) -> "Cure":
        """Completes a compaction that is pending. `force`: also one that a dead process has begun to run or undo."""
        return cls("execute", instant, _forced(force))

    @classmethod
    def restore(cls, savepoint: str) -> "Cure":
        return cls("restore", savepoint)

    @classmethod
    def delete_savepoint(cls, instant: str) -> "Cure":
        return cls("delete_savepoint", instant)

    @classmethod
    def clean(cls) -> "Cure":
        return cls("clean")

    @classmethod
    def history(cls) -> "Cure":
        """Lists the instants."""
        return cls("history")

    @classmethod
    def verify_deep(cls) -> "Cure":
        return cls("verify", None, (("deep", True),))

    @classmethod
    def repair(cls) -> "Cure":
        """Lists the repairs; a user looks at them before they are applied."""
        return cls("repair")

    @classmethod
    def recover_settings(cls, root: str) -> "Cure":
        """Shows the hoodie.properties that it would rebuild."""
        return cls("recover_settings", root)

    @classmethod
    def lost_keys(cls) -> "Cure":
        """Lists the keys that lost files take with them."""
        return cls("lost_keys")

    @classmethod
    def rebuild_metadata_table(cls, *indexes: str) -> "Cure":
        """Rebuilds Hudi's metadata table, with the indexes that it had; or with these."""
        return cls("rebuild_metadata_table", None, (("indexes", indexes),) if indexes else ())

    @classmethod
    def rebuild_metadata_table_without_indexes(cls) -> "Cure":
        return cls("rebuild_metadata_table", None, (("indexes", ()),))

    @classmethod
    def argument(cls, name: str, value: ArgumentValue = True) -> "Cure":
        return cls(None, None, ((name, value),))

    @classmethod
    def parse(cls, text: str) -> "Cure | None":
        """The cure of that text; None if it is none's."""
        try:
            call = ast.parse(text.strip("`") if "(" in text else f"_({text.strip('`')})", mode="eval").body
            if not isinstance(call, ast.Call):
                return None
            method = call.func.attr if isinstance(call.func, ast.Attribute) else None
            subjects = [node.id if isinstance(node, ast.Name) else str(_value(node)) for node in call.args]
            arguments = tuple((word.arg or "", _value(word.value)) for word in call.keywords)
        except (SyntaxError, ValueError):
            return None
        return cls(method, subjects[0] if subjects else None, arguments)

    def __str__(self) -> str:
        words = [f"{name}={_written(value)}" for name, value in self.arguments]
        if self.method is None:
            return f"`{', '.join(words)}`"
        if self.subject is not None:
            words.insert(0, self.subject if self.subject in PLACEHOLDERS else _written(self.subject))
        of = "Table" if self.method in _STATIC else "table"
        return f"`{of}.{self.method}({', '.join(words)})`"


def in_words(text: str, words: Callable[[Cure], str]) -> str:
    """The text with the cures that it names in other words."""

    def worded(match: re.Match[str]) -> str:
        cure = Cure.parse(match[0])
        return match[0] if cure is None else words(cure)

    return _TEXT.sub(worded, text)


def _forced(force: bool) -> tuple[tuple[str, ArgumentValue], ...]:
    return (("force", True),) if force else ()


def _value(node: ast.expr) -> ArgumentValue:
    value: ArgumentValue | list[str] = ast.literal_eval(node)
    return tuple(value) if isinstance(value, list) else value


def _written(value: ArgumentValue) -> str:
    return str(value) if isinstance(value, bool) else json.dumps(value, ensure_ascii=False)
