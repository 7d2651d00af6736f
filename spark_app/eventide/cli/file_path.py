"""A file or a directory on the command line."""

from pathlib import Path
from typing import Any

import click


class FilePath(click.Path):
    """A path. An empty one, as a shell makes it of a variable that is not set, is the working directory to Python."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail(f"{value!r} is no path: is a variable of the shell empty?", param, ctx)
        return super().convert(value, param, ctx)
