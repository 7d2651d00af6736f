"""A decoded timeline file as a document with typed access to its fields."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from eventide_core.cure import Cure
from eventide_core.errors import CorruptTimelineError

LONG = range(-(2**63), 2**63)

E = TypeVar("E", bound=StrEnum)
V = TypeVar("V")


def corrupt(path: str, what: str) -> CorruptTimelineError:
    """The error for timeline bytes that contradict their file name."""
    return CorruptTimelineError(
        f"timeline file {path} {what}; restore it from a copy, or roll its instant back with the engine that wrote it"
    )


def without_plan(path: str, instant: str) -> CorruptTimelineError:
    """The error for a rollback or restore whose requested file is empty."""
    return CorruptTimelineError(
        f"timeline file {path} is empty, though it should hold a plan; if it has no inflight file and its engine has died, "
        f"{Cure.rollback(instant, force=True)} removes it: it has undone nothing"
    )


@dataclass(frozen=True, slots=True)
class Document:
    """A mapping read from `path`, which errors name.

    `values` are as Avro or JSON decoded them: their types are checked when they are asked for. A field of a wrong type, or a
    required one that is absent, raises CorruptTimelineError.
    """

    values: Mapping[str, Any]
    path: str

    @classmethod
    def of(cls, value: object, path: str, what: str) -> "Document":
        if not isinstance(value, dict) or not {*map(type, value)} <= {str}:
            raise corrupt(path, f"has {_shown(value)} instead of {what}")
        return cls(value, path)

    def text(self, key: str) -> str | None:
        """A string; None if it is null or absent."""
        return self._value(key, str, "a string")

    def required_text(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.wrong(key, "a string")
        return value

    def integer(self, key: str) -> int | None:
        """A number that fits Avro's long; None if it is null or absent."""
        value = self.values.get(key)
        if value is not None and (type(value) is not int or value not in LONG):
            raise self.wrong(key, "a whole number")
        return value

    def count(self, key: str) -> int:
        """A number of 0 or more; 0 if it is null or absent."""
        value = self.integer(key) or 0
        if value < 0:
            raise self.wrong(key, "a number of 0 or more")
        return value

    def boolean(self, key: str) -> bool:
        """A truth value; False if it is null or absent."""
        return bool(self._value(key, bool, "true or false"))

    def member(self, key: str, kind: type[E], expected: str | None = None) -> E:
        """A member of the enum, by its text."""
        text = self.required_text(key)
        if text not in [str(member) for member in kind]:
            raise self.wrong(key, expected or f"one of {', '.join(kind)}")
        return kind(text)

    def items(self, key: str) -> list[Any]:
        """A list; empty if it is null or absent."""
        return self._value(key, list, "a list") or []

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.items(key)
        if not all(isinstance(value, str) for value in values):
            raise self.wrong(key, "a list of strings")
        return tuple(values)

    def documents(self, key: str) -> Iterator["Document"]:
        return (Document.of(value, self.path, f"an item of {key}") for value in self.items(key))

    def document(self, key: str) -> "Document":
        """A mapping; empty if it is null or absent."""
        value = self.values.get(key)
        return Document.of({} if value is None else value, self.path, key)

    def _value(self, key: str, kind: type[V], expected: str) -> V | None:
        value = self.values.get(key)
        if value is not None and not isinstance(value, kind):
            raise self.wrong(key, expected)
        return value

    def wrong(self, key: str, expected: str) -> CorruptTimelineError:
        return corrupt(self.path, f"has {key}={_shown(self.values.get(key))}, which is not {expected}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
