"""A fleet file, and the Hudi tables of a catalog."""

from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from eventide.catalog import locations_of
from eventide.fleet.settings import fleet_of_file, fleet_of_locations
from eventide_core.action.fleet.daily_window import DailyWindow
from eventide_core.action.sync.catalog_tables import PROVIDER_KEY, READ_OPTIMIZED_FORMAT
from eventide_core.config import DATA_LATENCY, THRESHOLD
from eventide_core.errors import ConfigError
from eventide_core.table.catalog.catalog_table import EXTERNAL_TABLE, CatalogTable

WHOLE = """
[fleet]
workers = 3
state = "state.json"
spark_from = "256MiB"
[defaults]
target_lag = "1h"
data_latency = "5m"
[options]
hoodie.compaction.target.io = 10
hoodie.compaction.event.time.threshold = "1000"
[[table]]
uri = "/lake/trips"
[[table]]
uri = "s3://lake/orders/"
name = "sales"
target_lag = "2h30m"
window = "22:00-06:00"
time_zone = "Europe/Berlin"
options = { "hoodie.compaction.target.io" = 20 }
"""


def write(directory: Path, text: str) -> Path:
    path = directory / "fleet.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_tables_settings_override_the_files_and_the_command_line_overrides_both(tmp_path: Path) -> None:
    fleet = fleet_of_file(write(tmp_path, WHOLE), {"hoodie.table.name": "t"})
    assert (fleet.workers, fleet.state, fleet.spark_from_bytes) == (3, tmp_path / "state.json", 256 << 20)
    trips, sales = fleet.tables
    assert (trips.name, trips.uri, trips.target.lag_ms, trips.target.window) == (
        "trips",
        "/lake/trips",
        3_600_000,
        None,
    )
    assert (sales.name, sales.target.lag_ms) == ("sales", 9_000_000)
    assert sales.target.window == DailyWindow(22 * 60, 6 * 60, ZoneInfo("Europe/Berlin"))
    assert trips.options == {
        "hoodie.compaction.target.io": "10",
        DATA_LATENCY: "300",
        "hoodie.table.name": "t",
    }, "the data latency excludes a T"
    assert sales.options["hoodie.compaction.target.io"] == "20"
    assert THRESHOLD not in sales.options


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[table]", "is not TOML"),
        ("", "names no table"),
        ("tables = 1", "'tables' is not one of"),
        ("[[table]]\nname = 'a'", "table 1 has no uri"),
        ("[[table]]\nuri = '/a'\nlag = '1h'", "table 1: 'lag' is not one of"),
        ("[[table]]\nuri = '/a'\ntarget_lag = '1 hour'", "table 1: target_lag '1 hour' is not a duration"),
        ("[[table]]\nuri = '/a'\ntarget_lag = '0'", "target_lag '0' is not above 0"),
        ("[[table]]\nuri = '/a'\ntarget_lag = '5m'\ndata_latency = '5m'", "has to be longer than data_latency"),
        ("[[table]]\nuri = '/a'\nwindow = '22-06'", "table 1: window '22-06'"),
        (
            "[[table]]\nuri = '/a'\nwindow = '22:00-06:00'\ntime_zone = 'Mars'",
            "table 1: time_zone 'Mars' is not a known time zone: use",
        ),
        ("[[table]]\nuri = '/a'\nwindow = '22:00-06:00'\ntime_zone = 'GMT+8:00'", "is an offset; use a name such as"),
        ("[[table]]\nuri = '/a/t'\n[[table]]\nuri = '/b/t'", "/a/t and /b/t are both named 't'"),
        ("[[table]]\nuri = '/a'\nname = 'x/y'", "name 'x/y' cannot be used"),
        ("[fleet]\nworkers = 0\n[[table]]\nuri = '/a'", "workers 0 is not"),
        ("[fleet]\nspark_from = '1 GB'\n[[table]]\nuri = '/a'", "spark_from '1 GB' is not a size"),
        ("[options]\na = [1]\n[[table]]\nuri = '/a'", "option a is not a string"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_place(text: str, says: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=says) as refused:
        fleet_of_file(path, {})
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("threshold", ["1772496000", "-5", "2026-11-21", "soon"])
@pytest.mark.parametrize("of_table", [True, False])
def test_a_threshold_that_cannot_be_used_is_refused_at_load(threshold: str, of_table: bool, tmp_path: Path) -> None:
    table = '[[table]]\nuri = "/lake/trips"\n'
    said = f'"{THRESHOLD}" = "{threshold}"'
    text = f"{table}options = {{ {said} }}\n" if of_table else f"[options]\n{said}\n{table}"
    path = write(tmp_path, text)
    with pytest.raises(
        ConfigError, match=rf"{path}, table 1: option {THRESHOLD}: T .*{threshold}.* give|epoch seconds"
    ):
        fleet_of_file(path, {})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        fleet_of_file(tmp_path / "none.toml", {})


def catalog_table(name: str, location: str, *, provider: str = "", input_format: str = "") -> CatalogTable:
    properties = {PROVIDER_KEY: provider} if provider else {}
    return CatalogTable("lake", name, EXTERNAL_TABLE, location, (), (), input_format, "", "", {}, properties)


def test_the_hudi_tables_of_a_catalog_are_one_for_each_location() -> None:
    found = locations_of(
        [
            catalog_table("trips_ro", "file:/lake/trips", input_format=READ_OPTIMIZED_FORMAT),
            catalog_table("trips_rt", "file:/lake/trips", provider="hudi"),
            catalog_table("trips", "s3://lake/other", provider="HUDI"),
            catalog_table("plain", "/lake/plain", provider="parquet"),
        ]
    )
    assert found == {"trips": "s3://lake/other", "trips_ro": "/lake/trips"}
    fleet = fleet_of_locations(found, {}, target_lag="90s")
    assert [table.target.lag_ms for table in fleet.tables] == [90_000, 90_000]


def test_a_window_without_a_zone_is_in_utc(tmp_path: Path) -> None:
    fleet = fleet_of_file(write(tmp_path, "[[table]]\nuri = '/a'\nwindow = '01:00-02:00'"), {})
    assert fleet.tables[0].target.window == DailyWindow(60, 120, UTC)
