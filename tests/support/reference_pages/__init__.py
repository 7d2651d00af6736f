"""The pages of docs/reference, made from the code: options, command line, errors, steps.

`./run docs` writes them (`python -m support.reference_pages`). A test compares the committed pages with the output.
"""

from pathlib import Path

from support.reference_pages.command_line import command_line_pages
from support.reference_pages.configuration import configuration_pages
from support.reference_pages.errors import errors_page
from support.reference_pages.steps import steps_page

DIRECTORY = Path(__file__).parents[3] / "docs" / "reference"


def pages() -> dict[str, str]:
    """Each page by its file name, as the code defines it."""
    return {
        **configuration_pages(),
        **command_line_pages(),
        "errors.md": errors_page(),
        "steps.md": steps_page(),
    }
