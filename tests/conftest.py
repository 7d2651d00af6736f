"""What every test may ask for by name, and what the run reports at its end."""

import os
import re
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from support.run.reach import REACHED

# How long an example takes says nothing on a machine that does other work.
settings.register_profile("eventide", deadline=None)
settings.load_profile("eventide")

# Every Spark that a test starts does little, once: without the optimizing compiler it takes half the processor time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC")

REAL_HUDI = {"judge_015", "judge_102", "judge_111", "judge_111_with_catalog", "judge_120", "judge"}
CLOUD_SERVERS = {"moto", "seaweedfs", "rclone", "fake_gcs", "azurite"}
HDFS_SERVERS = {"hdfs", "hdfs_with_symlinks", "native_hdfs", "secured_hdfs", "federated_hdfs"}
SERVERS = {*CLOUD_SERVERS, *HDFS_SERVERS, "hive_metastore", "kafka", "spark", "zookeeper", "parts"}

SLOW = {"conformance", "project", "properties"}
NOT_QUICK = ("campaign", "real", "slow")
WHOLE_FILE_IS_NOT = re.compile(rf"^pytestmark = .*\bmark\.({'|'.join(NOT_QUICK)})\b", re.MULTILINE)

pytest_plugins = ["support.run.campaign", "support.run.parts", "support.judge.fixtures", "support.servers.fixtures"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real: needs real Hudi, Spark or a server (marked by its fixtures)")
    config.addinivalue_line("markers", "slow: takes seconds")
    config.addinivalue_line("markers", "quick: none of campaign, real and slow: ./run test quick selects only these")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out of the quick tests what has none of them, before it is imported: that takes longer than many a test."""
    if config.getoption("markexpr") != "quick":
        return None
    if collection_path.is_dir():
        return True if collection_path.parent == Path(__file__).parent and collection_path.name in SLOW else None
    is_left_out = collection_path.name.startswith("test_") and WHOLE_FILE_IS_NOT.search(
        collection_path.read_text("utf-8")
    )
    return True if is_left_out else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is `real`, and puts the files that take longest first, so that all processes end together."""
    places: dict[Path, int] = {}
    for item in items:
        needed = {*getattr(item, "fixturenames", ()), *_named_in_parameters(item)}
        # A test that asks by `request` may compute the name of a judge or a server.
        asks = "request" in signature(getattr(item, "function", _nothing)).parameters
        if asks or needed & (REAL_HUDI | SERVERS):
            item.add_marker("real")
        is_first = (needed & REAL_HUDI, item.get_closest_marker("campaign"), needed & SERVERS, asks)
        place = next((place for place, is_here in enumerate(is_first) if is_here), len(is_first))
        if item.path.relative_to(Path(__file__).parent).parts[0] in SLOW:
            item.add_marker("slow")
        if not any(item.get_closest_marker(name) for name in NOT_QUICK):
            item.add_marker("quick")
        places[item.path] = min(places.get(item.path, place), place)
    items.sort(key=lambda item: places[item.path])


def _nothing() -> None: ...


def _named_in_parameters(item: pytest.Item) -> set[str]:
    """A fixture that asks by `request` names a judge or a server in its parameter, alone or first of several values."""
    parameters: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    firsts = (value[0] if isinstance(value, tuple) and value else value for value in parameters.values())
    return {value for value in firsts if isinstance(value, str)}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process that runs a part of the tests hands what it reached to the one that reports it."""
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
