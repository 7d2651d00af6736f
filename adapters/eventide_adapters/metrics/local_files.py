"""Local files of measurements: in Prometheus' text format, and JSON lines."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import getpid
from pathlib import Path
from typing import Any

from eventide_adapters.metrics.options import METRICS_PREFIX, metrics_file
from eventide_core.config import Options
from eventide_core.errors import StorageError, printable
from eventide_core.table.catalog.metric import Metric


@dataclass(frozen=True, slots=True)
class PrometheusTextfile:
    """ports.MetricsSink over a file in Prometheus' text format, for the textfile collector of its node exporter.

    # HELP <name> <text>
        # TYPE <name> gauge
        <name>{table="<table>"[,reason="<reason>"]} <value>

    The file has only the values of the last measurement. It is replaced as a whole: written beside its place, then renamed.
    A collector reads files whose names end in `.prom`, so each table has one. Each name begins with `prefix`.
    """

    path: str
    prefix: str

    def write(self, table: str, at_ms: int, metrics: Sequence[Metric]) -> None:  # noqa: ARG002
        # The collector refuses a file whose samples have a time: the file's modification time stands for `at_ms`.
        target = Path(self.path)
        part = target.with_name(f".{target.name}.{getpid()}.part")
        try:
            part.write_text(self._text(table, metrics), encoding="utf-8")
            part.replace(target)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise StorageError(f"metrics file {self.path} cannot be written: {error.strerror}") from error

    def _text(self, table: str, metrics: Sequence[Metric]) -> str:
        lines: list[str] = []
        declared: set[str] = set()
        for metric in metrics:
            name = metric.sample_name(self.prefix)
            if name not in declared:
                declared.add(name)
                lines += [f"# HELP {name} {metric.about}", f"# TYPE {name} gauge"]
            reason = "" if metric.reason is None else f',reason="{_label(metric.reason)}"'
            lines.append(f'{name}{{table="{_label(table)}"{reason}}} {metric.value!r}')
        return "".join(f"{line}\n" for line in lines)


def open_textfile(options: Options) -> PrometheusTextfile:
    return PrometheusTextfile(metrics_file(options), options.get(METRICS_PREFIX))


def _label(text: str) -> str:
    escaped = printable(text.replace("\\", "\\\\"), keeps_lines=True)
    return escaped.replace('"', '\\"').replace("\n", "\\n")


@dataclass(frozen=True, slots=True)
class JsonLines:
    """ports.MetricsSink over a file to which each measurement adds one line, a JSON object.

    {"table": "trips", "at_ms": 1700000000000, "eventide_log_files": 3, ..., "eventide_<name>": {"<reason>": 0, ...}}

    Each name begins with `prefix`.
    """

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
