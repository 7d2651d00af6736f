"""The types of arguments that several verbs take: a path, an instant, a duration."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventide_core.config import EMPTY_VARIABLE, duration_of, positive_duration_of
from eventide_core.errors import ConfigError

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class FilePath(click.Path):
    """A path on this machine. A URI, whose double slash Python drops, would be a path below the working directory.

    An empty path, as a shell makes it of a variable that is not set, is the working directory to Python.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail(f"{value!r} isn't a path {EMPTY_VARIABLE}", param, ctx)
        if _URI.match(str(value)):
            self.fail(f"{value!r} is a URI: name a path on this machine, such as /tmp/out", param, ctx)
        return super().convert(value, param, ctx)


class GivenText(click.types.StringParamType):
    """A text that is not empty. `name` is what it names, such as a partition; what is so named is checked elsewhere."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail(f"the {self.name} must not be {value!r} {EMPTY_VARIABLE}", param, ctx)
        return super().convert(value, param, ctx)


INSTANT = GivenText("instant")
NAME = GivenText("name")
PARTITION = GivenText("partition")
FIELDS = GivenText("name of a field")


if TYPE_CHECKING:
    _WholeNumber = click.ParamType[int]
else:
    _WholeNumber = click.ParamType  # not subscriptable before 8.4


class Duration(_WholeNumber):
    """A duration on the command line, in whole seconds: 90s, 30m, 2h, 1d, or 1h30m."""

    name = "duration"

    def __init__(self, *, is_positive: bool = False) -> None:
        self._read = positive_duration_of if is_positive else duration_of

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return self._read(value, "")
        except ConfigError as error:
            self.fail(str(error), param, ctx)
