"""A duration on the command line: 90s, 30m, 2h, 1d, or 1h30m."""

import re
from typing import Any

import click

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:\d{1,9}[smhd])+", re.ASCII)


class Duration(click.ParamType[int]):
    """Whole seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if not _DURATION.fullmatch(value):
            self.fail(f"{value!r} is no duration; give one such as 90s, 30m, 2h or 1d", param, ctx)
        return sum(int(count) * _SECONDS[unit] for count, unit in re.findall(r"(\d+)([smhd])", value))
