"""An instant on the command line."""

from typing import Any

import click


class InstantText(click.types.StringParamType):
    """The time that names an action, checked where the table is known. An empty one would be left out of every message."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail(f"{value!r} is no instant: is a variable of the shell empty?", param, ctx)
        return super().convert(value, param, ctx)
