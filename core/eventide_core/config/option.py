"""An option: its key, type, default and meaning, declared once. It is read, checked and documented by that declaration.

LOCK_WAIT_MS = Option("hoodie.write.lock.wait_time_ms", WHOLE_NUMBER, 60_000, "How long to wait for the lock.")

options.get(LOCK_WAIT_MS)  # 60000, the user's value, or a ConfigError
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final, Generic, Self, TypeVar

from eventide_core.config.times import A_DURATION, duration_seconds
from eventide_core.errors import ConfigError

FIRST_VERSION: Final = "0.1.0"
# Keys that nobody else reads. Others belong to Hudi, Spark or Hadoop, which have more of them than eventide reads.
_OWN_KEYS: Final = ("eventide.", "hoodie.eventide.")
_PARTLY_OWN_KEYS: Final = ("s3.", "windows.", "hoodie.compaction.event.time.")
_OF_HUDI: Final = "hoodie."
_NEARNESS: Final = 0.8  # of difflib: one or two typing errors in a key, or in one of its parts
EMPTY_VARIABLE: Final = "(is a shell variable empty?)"  # ends each message about an empty value

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class OptionType(Generic[T_co]):
    """What values an option takes. `name` is for the reference page, `allowed` completes "is not ...".

    `read` raises ValueError for a text that isn't such a value. `choices` are all there are, or empty.
    """

    name: str
    allowed: str
    read: Callable[[str], T_co]
    choices: tuple[str, ...] = ()


def whole_number(at_least: int = 0, at_most: int | None = None) -> OptionType[int]:
    """A decimal number in these bounds, both included."""

    def read(text: str) -> int:
        number = int(text) if text.isdecimal() else -1
        if number < at_least or (at_most is not None and number > at_most):
            raise ValueError
        return number

    bounds = f"{at_least} or more" if at_most is None else f"{at_least} to {at_most}"
    return OptionType("whole number", f"a whole number of {bounds}", read)


def choice(kind: type[E]) -> OptionType[E]:
    """One of an enumeration, in whatever case."""
    return _one_of({member.value.lower(): member for member in kind})


def one_of(*names: str) -> OptionType[str]:
    """One of these names, in whatever case; read as it is written here."""
    return _one_of({name.lower(): name for name in names})


def _one_of(members: Mapping[str, E] | Mapping[str, str]) -> OptionType[Any]:
    choices = tuple(str(member) for member in members.values())

    def read(text: str) -> str:
        try:
            return members[text.lower()]
        except KeyError:
            raise ValueError from None

    return OptionType(", ".join(choices), f"one of {', '.join(choices)}", read, choices)


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _duration(text: str) -> int:
    seconds = duration_seconds(text)
    if seconds is None:
        raise ValueError
    return seconds


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError
    return value


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError
    return names


TEXT: OptionType[str] = OptionType("text", "a text", str)
WHOLE_NUMBER = whole_number()
BYTES: OptionType[int] = OptionType("bytes", "a whole number of bytes", WHOLE_NUMBER.read)
FLAG: OptionType[bool] = OptionType("true, false", "true or false", _flag, ("true", "false"))
DURATION: OptionType[int] = OptionType("duration", A_DURATION, _duration)
FRACTION: OptionType[float] = OptionType("between 0 and 1", "a number between 0 and 1", _fraction)
NAMES: OptionType[tuple[str, ...]] = OptionType("list", "a list of names with commas between", _names)


@dataclass(frozen=True, eq=False, repr=False)
class Option(str, Generic[T]):
    """An option is its `key`, with what is known about it: messages and mappings of options treat it as the key.

    `kind` says what values it takes, `default` is the value if the user gives none, and `doc` its meaning for the reference
    page. `since` is the first version that has it. `otherwise` describes the default in words, if it is not the value of
    `default`. `aliases` are other names of the same option, of which the first that is given counts. A key that ends with
    `.*` stands for all keys that begin so, which `Options.below` reads. `secret`: no text may show the value.
    """

    key: str
    kind: OptionType[T]
    default: T
    doc: str
    _: KW_ONLY
    otherwise: str | None = None
    aliases: tuple[str, ...] = ()
    since: str = FIRST_VERSION
    secret: bool = False

    def __new__(cls, key: str, *_: object, **__: object) -> Self:
        return super().__new__(cls, key)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """To another process goes the key alone, as part of a mapping of options."""
        return str, (str(self),)

    @property
    def names(self) -> tuple[str, ...]:
        return (str(self), *self.aliases)

    @property
    def default_text(self) -> str:
        """The default as a user would write it; empty if nothing is the default."""
        match self.default:
            case None:
                return ""
            case bool() as flag:
                return str(flag).lower()
            case value:
                return str(value)


def optional(
    key: str,
    kind: OptionType[T],
    doc: str,
    *,
    otherwise: str | None = None,
    aliases: tuple[str, ...] = (),
    secret: bool = False,
) -> Option[T | None]:
    """An option that is None unless the user gives it; `otherwise` says what that means."""
    return Option(key, kind, None, doc, otherwise=otherwise, aliases=aliases, secret=secret)


@dataclass(frozen=True, slots=True)
class Options:
    """Options by key, as the user wrote them.

    `values` may have keys that no option has, and any of an option's names. Some are secrets, so no value is shown.
    """

    values: Mapping[str, str] = field(repr=False)

    def get(self, option: Option[T]) -> T:
        """The user's value, otherwise the default. Raises ConfigError for a value that the option does not take."""
        text = self.text(option)
        if text is None:
            return option.default
        try:
            return option.kind.read(text)
        except ValueError:
            default = option.otherwise or option.default_text
            raise ConfigError(
                f"option {self.name(option)}={text!r} is not {option.kind.allowed}; omit it for the default"
                + (f", {default}" if default else "")
            ) from None

    def text(self, option: Option[Any]) -> str | None:
        """The user's value, as it is written; None if there is none, or a blank one."""
        return self._given(self.name(option))

    def name(self, option: Option[Any]) -> str:
        """The name by which the user gives the option; its key where it is not given."""
        return next((name for name in option.names if self._given(name) is not None), str(option))

    def below(self, option: Option[Any]) -> dict[str, str]:
        """What is given of an option that stands for many keys."""
        prefix = option.removesuffix("*")
        return {key: value for key, value in self.values.items() if key.startswith(prefix)}

    def _given(self, name: str) -> str | None:
        value = self.values.get(name)
        return value.strip() if value is not None and value.strip() else None


def unknown_keys(keys: Iterable[str], declared: Iterable[Option[Any]]) -> tuple[str, ...]:
    """A sentence for each key that no option has, and that looks like one of eventide's.

    A key of Hudi's that eventide does not read is passed over, unless one of its parts is misspelled. Raises ConfigError
    for an unknown key that nobody but eventide could read.
    """
    known = sorted({name for option in declared for name in option.names})
    prefixes = tuple(name.removesuffix("*") for name in known if name.endswith(".*"))
    unknown = [key for key in keys if key not in known and not key.startswith(prefixes)]
    for key in unknown:
        if key.startswith(_OWN_KEYS):
            near = get_close_matches(key, known, n=1, cutoff=_NEARNESS)
            cure = f"did you mean {near[0]}?" if near else "docs/reference has all options"
            raise ConfigError(f"option {key} is unknown; {cure}")
    return tuple(sentence for key in unknown if (sentence := _unknown(key, known)) is not None)


def _unknown(key: str, known: list[str]) -> str | None:
    if key.startswith(_PARTLY_OWN_KEYS):
        near = get_close_matches(key, known, n=1, cutoff=_NEARNESS)
        cure = f"did you mean {near[0]}?" if near else "docs/reference has all options"
        return f"option {key} is unknown and has no effect; {cure}"
    if key.startswith(_OF_HUDI):
        meant = next((name for name in known if _differs_in_one_part(key, name)), None)
        return None if meant is None else f"option {key} is unknown to eventide; did you mean {meant}?"
    return None


def _differs_in_one_part(key: str, known: str) -> bool:
    """Whether one part between dots is another, similar one. Two options of Hudi mostly differ in more."""
    parts, known_parts = key.split("."), known.split(".")
    if len(parts) != len(known_parts):
        return False
    others = [pair for pair in zip(parts, known_parts, strict=True) if pair[0] != pair[1]]
    return len(others) == 1 and bool(get_close_matches(others[0][0], [others[0][1]], cutoff=_NEARNESS))
