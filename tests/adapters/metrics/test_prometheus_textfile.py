"""The textfile of Prometheus' node exporter."""

from pathlib import Path

import pytest

from eventide_adapters.metrics.local_files import PrometheusTextfile
from eventide_core.errors import StorageError
from eventide_core.table.catalog.metric import Metric

FALLBACKS = tuple(Metric("fallbacks", "By reason.", count, reason) for reason, count in (("a", 1), ("b", 0)))


def test_a_name_is_described_once_and_labels_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "trips.prom"
    file.write_text("what was there before\n")
    PrometheusTextfile(str(file), "my lake").write('a"b\\c\nd', 0, (*FALLBACKS, Metric("lag_seconds", "Lag.", 1.5)))
    assert file.read_text().splitlines() == [
        "# HELP my_lake_fallbacks By reason.",
        "# TYPE my_lake_fallbacks gauge",
        r'my_lake_fallbacks{table="a\"b\\c\nd",reason="a"} 1',
        r'my_lake_fallbacks{table="a\"b\\c\nd",reason="b"} 0',
        "# HELP my_lake_lag_seconds Lag.",
        "# TYPE my_lake_lag_seconds gauge",
        r'my_lake_lag_seconds{table="a\"b\\c\nd"} 1.5',
    ]


def test_a_file_that_cannot_be_written_is_a_storage_error_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "trips.prom").mkdir()
    with pytest.raises(StorageError):
        PrometheusTextfile(str(tmp_path / "trips.prom"), "eventide").write("trips", 0, FALLBACKS)
    assert list(tmp_path.iterdir()) == [tmp_path / "trips.prom"]
