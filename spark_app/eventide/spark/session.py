"""A SparkSession for one run, without the noise of its start."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eventide_core.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_BYTES_MAX = 1 << 20  # a start that fails says so within some kilobytes


@contextmanager
def quiet_session(master: str | None, *, is_loud: bool) -> Iterator["SparkSession"]:
    """A session that ends with the block, unless it was there before. `is_loud`: Spark's log goes to stderr.

    Raises EngineError, with what Spark said, when it does not start.
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
    """Starts Spark with stderr pointing to a file: its Java machine inherits that, and keeps it."""
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
