"""What writers state of their sources: how far each has come, as commits record it. Only this module reads and writes it.

    eventide.source.<name>.watermark   T: everything of the source before T has come. ISO-8601 with a zone, or epoch ms
    eventide.source.<name>.carried     "<instant> <T>": the statement of an earlier commit, repeated

Any writer can state it: eventide by `sources=`, a stock Spark writer by the option
`hoodie.datasource.write.commitmeta.key.prefix=eventide.source.`. Each write and compaction of eventide repeats the last
statement of each source, so that it stays on the active timeline.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core.errors import InvalidThresholdError
from eventide_core.table.records.event_time import parse_threshold

STATEMENT_PREFIX: Final = "eventide.source."
_STATED: Final = "watermark"
_CARRIED: Final = "carried"


@dataclass(frozen=True, slots=True)
class Statement:
    """The source `name` had come to `text`, says the commit with the requested time `stated_at`.

    Any writer can state anything, so the text may not be a T.
    """

    name: str
    text: str
    stated_at: str

    @property
    def watermark_ms(self) -> int | None:
        """Everything of the source before it has come. None if the text is not a T."""
        try:
            return parse_threshold(self.text)
        except InvalidThresholdError:
            return None


def texts_of_statements(statements: Iterable[Statement]) -> dict[str, str]:
    """The statements as extra metadata of a later commit."""
    return {_key(one.name, _CARRIED): f"{one.stated_at} {one.text}" for one in statements}


def stated(watermarks: Mapping[str, str]) -> dict[str, str]:
    """T of each source by its name, as extra metadata of the commit that states it."""
    return {_key(name, _STATED): text for name, text in watermarks.items()}


def statements_in(instant: str, extra_metadata: Mapping[str, str]) -> Iterator[Statement]:
    """The statements of a commit: its own ones, and those that it repeats. A mistyped key states itself, which isn't a T."""
    for key, text in extra_metadata.items():
        if not key.startswith(STATEMENT_PREFIX):
            continue
        name, _, kind = key.removeprefix(STATEMENT_PREFIX).rpartition(".")
        if kind == _STATED:
            yield Statement(name, text.strip(), instant)
        elif kind == _CARRIED:
            stated_at, _, carried = text.partition(" ")
            yield Statement(name, carried, stated_at)
        elif _key(name, _STATED) not in extra_metadata:  # a mistyped key, whose value may be anything
            yield Statement(name or kind, key, instant)


def is_repeated(key: str) -> bool:
    """Whether the key of extra metadata belongs to a repeated statement."""
    return key.startswith(STATEMENT_PREFIX) and key.endswith(f".{_CARRIED}")


def last_statements(statements: Iterable[Statement], completed: Mapping[str, str]) -> tuple[Statement, ...]:
    """The last statement of each source, by its name.

    `completed` has when the commits of the active timeline completed; others completed before them.
    """
    last: dict[str, Statement] = {}

    def order(one: Statement) -> tuple[str, str]:
        return completed.get(one.stated_at, ""), one.stated_at

    for one in statements:
        if one.name not in last or order(one) >= order(last[one.name]):
            last[one.name] = one
    return tuple(last[name] for name in sorted(last))


def _key(name: str, kind: str) -> str:
    return f"{STATEMENT_PREFIX}{name}.{kind}"
