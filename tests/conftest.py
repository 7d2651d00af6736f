"""What every test may ask for by name, and what the run tells at its end."""

import os
from typing import Any

import pytest

from support.reach import REACHED

# Every Spark that a test starts does little, once: without the optimizing compiler it takes half the processor time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

pytest_plugins = ["support.run_parts", "support.judge.fixtures", "support.servers.fixtures"]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process that runs a part of the tests hands what it reached to the one that tells it."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["reached"] = dict(REACHED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes what another process reached."""
    REACHED.update(getattr(node, "workeroutput", {}).get("reached", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what was reached, above the closing line."""
    if REACHED:
        terminalreporter.section("reached")
        for what, count in sorted(REACHED.items()):
            terminalreporter.write_line(f"{what}: {count}")
