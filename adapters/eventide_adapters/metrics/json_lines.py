"""A file to which each measurement adds one line: a JSON object with the table, the time, and each value.

{"table": "trips", "at_ms": 1700000000000, "eventide_log_files": 3, ..., "eventide_<name>": {"<reason>": 0, ...}}
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eventide_adapters.metrics.options import METRICS_PREFIX, metrics_file
from eventide_core.config import Options
from eventide_core.errors import StorageError
from eventide_core.table.catalog.metric import Metric


@dataclass(frozen=True, slots=True)
class JsonLines:
    """ports.MetricsSink over a local file. Each name begins with `prefix`."""

    path: str
    prefix: str

    def write(self, table: str, at_ms: int, metrics: Sequence[Metric]) -> None:
        document: dict[str, Any] = {"table": table, "at_ms": at_ms}
        for metric in metrics:
            name = f"{self.prefix}_{metric.name}"
            if metric.reason is None:
                document[name] = metric.value
            else:
                document.setdefault(name, {})[metric.reason] = metric.value
        line = f"{json.dumps(document)}\n".encode()
        try:
            # One write at the end of the file, so that lines of two processes do not mix.
            with open(self.path, "ab", buffering=0) as file:
                file.write(line)
        except OSError as error:
            raise StorageError(f"metrics file {self.path} cannot be written: {error.strerror}") from error


def open_json_lines(options: Options) -> JsonLines:
    return JsonLines(metrics_file(options), options.get(METRICS_PREFIX))
