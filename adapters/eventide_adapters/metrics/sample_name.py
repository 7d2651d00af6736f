"""What a metric is called outside."""

import re

from eventide_core.table.metric import Metric


def sample_name(prefix: str, metric: Metric) -> str:
    """`<prefix>_<name>`, of characters that Prometheus and OpenTelemetry both take."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", f"{prefix}_{metric.name}")
