"""What every test may ask for by name, and what the run tells at its end."""

import pytest

from support.reach import REACHED

pytest_plugins = ["support.judge.fixtures", "support.servers.fixtures"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what was reached, above the closing line."""
    if REACHED:
        terminalreporter.section("reached")
        for what, count in sorted(REACHED.items()):
            terminalreporter.write_line(f"{what}: {count}")
