"""A SparkSession for one run, started without its log output."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eventide_core.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_BYTES_MAX = 1 << 20  # a failing start reports it within a few kilobytes


@contextmanager
def quiet_session(master: str | None, *, is_loud: bool) -> Iterator["SparkSession"]:
    """A session that ends with the block, unless it existed before. `is_loud`: Spark's log goes to stderr.

    Raises EngineError, with Spark's output, if Spark does not start.
    """
    from pyspark.sql import SparkSession

    from eventide.spark.engine import spark_session

    is_ours = SparkSession.getActiveSession() is None
    spark = spark_session(master) if is_loud else _started_quietly(master)
    try:
        yield spark
    finally:
        if is_ours:
            spark.stop()


def _started_quietly(master: str | None) -> "SparkSession":
    """Starts Spark while stderr points to a file. Its JVM inherits that file as stderr, and keeps it."""
    from eventide.spark.engine import spark_session

    with tempfile.TemporaryFile() as log:
        sys.stderr.flush()
        terminal = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            return spark_session(master)
        except Exception as error:
            raise EngineError(
                f"Spark did not start: {_last_words(log.fileno()) or error}; --debug shows its log"
            ) from error
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _last_words(descriptor: int) -> str:
    text = os.pread(descriptor, _LOG_BYTES_MAX, 0).decode(errors="replace")
    return next((line.strip() for line in reversed(text.splitlines()) if "Exception" in line or "Error" in line), "")
