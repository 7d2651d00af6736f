"""Decides what happens to tests whose real counterpart (Hudi, HDFS, a metastore, ...) is missing on this machine."""

import os
from typing import NoReturn

import pytest

REQUIRED = "EVENTIDE_REQUIRE_REAL"


def require_or_skip(reason: str) -> NoReturn:
    """Skips the running test and states why, or fails it if EVENTIDE_REQUIRE_REAL=1 requires the real thing."""
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{REQUIRED}=1, but {reason}", pytrace=False)
    pytest.skip(reason)
