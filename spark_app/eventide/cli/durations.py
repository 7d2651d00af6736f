"""A duration on the command line: 90s, 30m, 2h, 1d, or 1h30m."""

from typing import Any

import click

from eventide_core.config import duration_seconds


class Duration(click.ParamType[int]):
    """Whole seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        seconds = duration_seconds(value)
        if seconds is None:
            self.fail(f"{value!r} is no duration; give one such as 90s, 30m, 2h or 1d", param, ctx)
        return seconds
