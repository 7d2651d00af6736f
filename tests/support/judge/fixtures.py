"""Fixtures of the judges: each version starts once in a run, when a test first asks for it (support.run.parts)."""

from collections.abc import Iterator

import pytest

from support.judge.hudi_judge import HudiJudge, JudgeUnavailableError, hudi_server
from support.run.maven import JarUnavailableError
from support.run.parts import Parts
from support.run.real_parts import require_or_skip
from support.servers.hive_metastore import HiveMetastoreServer


def _judge(parts: Parts, version: str, metastore: str | None = None) -> Iterator[HudiJudge]:
    try:
        server = parts.get(hudi_server, version, metastore)
    except (JarUnavailableError, JudgeUnavailableError) as missing:
        require_or_skip(f"Hudi {version} can't run here: {missing}")
    with HudiJudge(server) as judge:
        yield judge


@pytest.fixture(scope="session")
def judge_015(parts: Parts) -> Iterator[HudiJudge]:
    """Hudi 0.15.0: writes table version 6."""
    yield from _judge(parts, "0.15.0")


@pytest.fixture(scope="session")
def judge_102(parts: Parts) -> Iterator[HudiJudge]:
    """Hudi 1.0.2: writes table versions 6 and 8."""
    yield from _judge(parts, "1.0.2")


@pytest.fixture(scope="session")
def judge_111(parts: Parts) -> Iterator[HudiJudge]:
    """Hudi 1.1.1: writes table versions 6, 8 and 9."""
    yield from _judge(parts, "1.1.1")


@pytest.fixture(scope="session")
def judge_111_with_catalog(parts: Parts, hive_metastore: HiveMetastoreServer) -> Iterator[HudiJudge]:
    """Hudi 1.1.1, whose Spark finds tables by name in a Hive Metastore."""
    yield from _judge(parts, "1.1.1", hive_metastore.uri)


@pytest.fixture(scope="session")
def judge_120(parts: Parts) -> Iterator[HudiJudge]:
    """Hudi 1.2.0: writes table versions 6, 8 and 9."""
    yield from _judge(parts, "1.2.0")
