"""The tables of a fleet, as a TOML file names them.

[fleet]
workers = 2                  # compactions at a time
state = "fleet.state.json"   # remembers costs and errors from run to run
spark_from = "1GiB"          # log files from which a compaction runs on Spark, where Spark is used at all

[defaults]                   # of each table
target_lag = "1h"
data_latency = "5m"

[options]                    # of each table: keys of Hudi, of eventide, and of the storage

[[table]]
uri = "/lake/trips"
name = "trips"               # by default, the last part of the URI
target_lag = "15m"
window = "22:00-06:00"
time_zone = "Europe/Berlin"
options = { "hoodie.compaction.target.io" = 10240 }
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eventide.options.user_settings import check_keys, flat_options, toml_document
from eventide_core.action.fleet.daily_window import DailyWindow
from eventide_core.action.fleet.scheduler import Target
from eventide_core.config import DATA_LATENCY, THRESHOLD, Options, positive_duration_of, zone_of
from eventide_core.errors import ConfigError, InvalidThresholdError
from eventide_core.table.records.event_time import parse_threshold

TARGET_LAG: Final = "1h"
SPARK_FROM: Final = "1GiB"
_UNITS: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE: Final = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB|TiB)", re.ASCII)
_FLEET: Final = ("workers", "state", "spark_from")
_DEFAULTS: Final = ("target_lag", "data_latency", "window", "time_zone")
_TABLE: Final = ("uri", "name", "options", *_DEFAULTS)


@dataclass(frozen=True, slots=True)
class FleetTable:
    """A table with its target, and the options to open it with.

    `target` has its name in the fleet, the lag that it may have, and when it may be compacted. `options` are the file's
    for all tables and for this one, and the command line's, which take precedence.
    """

    uri: str
    target: Target
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.target.name


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """A fleet. `state` is the file that remembers what was measured; None without one.

    `tables` are in the order of the file, with names that differ. `workers` is how many rounds run at a time. A round runs
    on Spark, where Spark is used at all, if the table's log files have `spark_from_bytes` or more.
    """

    tables: tuple[FleetTable, ...]
    workers: int = 1
    state: Path | None = None
    spark_from_bytes: int = 1 << 30


def fleet_of_file(path: Path, options: Mapping[str, str]) -> FleetSettings:
    """The fleet of a TOML file. `options` of the command line take precedence. Raises ConfigError."""
    where = f"fleet file {path}"
    document = toml_document(path, "fleet file")
    check_keys(document, ("fleet", "defaults", "options", "table"), where)
    fleet, defaults = _section(document, "fleet", _FLEET, where), _section(document, "defaults", _DEFAULTS, where)
    common = dict(flat_options(_section(document, "options", None, where), where))
    listed = document.get("table", [])
    if not isinstance(listed, list) or not listed:
        raise ConfigError(f"{where} names no table: add [[table]] with a uri")
    tables: list[FleetTable] = []
    for number, given in enumerate(listed, start=1):
        at = f"{where}, table {number}"
        if not isinstance(given, dict):
            raise ConfigError(f"{at} is not a TOML table: write [[table]] with a uri")
        check_keys(given, _TABLE, at)
        tables.append(_table({**defaults, **given}, common, options, at))
    workers = fleet.get("workers", 1)
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise ConfigError(f"{where}: workers {workers!r} is not a whole number of at least 1")
    state = fleet.get("state")
    return FleetSettings(
        _named_once(tables, where),
        workers,
        None if state is None else path.parent / _text(state, "state", where),
        _size(_text(fleet.get("spark_from", SPARK_FROM), "spark_from", where), where),
    )


def fleet_of_locations(
    locations: Mapping[str, str], options: Mapping[str, str], *, target_lag: str = TARGET_LAG
) -> FleetSettings:
    """The fleet of tables by name, such as a catalog's, with the same target. Raises ConfigError."""
    given = {"target_lag": target_lag}
    return FleetSettings(
        tuple(
            _table({**given, "uri": uri, "name": name}, {}, options, f"table {name}")
            for name, uri in sorted(locations.items())
        )
    )


def _table(given: Mapping[str, Any], common: Mapping[str, str], options: Mapping[str, str], where: str) -> FleetTable:
    if "uri" not in given:
        raise ConfigError(f"{where} has no uri")
    uri = _text(given["uri"], "uri", where)
    name = _text(given.get("name", uri.rstrip("/").rpartition("/")[2]), "name", where)
    if not name or "/" in name or name.startswith("."):
        raise ConfigError(f"{where}: name {name!r} cannot be used: it is empty, contains /, or starts with a dot")
    own = given.get("options", {})
    if not isinstance(own, dict):
        raise ConfigError(f"{where}: options is not a TOML table")
    merged = {**common, **dict(flat_options(own, where)), **options}
    latency = given.get("data_latency")
    if latency is not None:
        merged = {key: value for key, value in merged.items() if key != THRESHOLD}
        merged[DATA_LATENCY] = str(_seconds(latency, "data_latency", where))
    _check_threshold(merged, where)
    lag_ms = 1000 * _seconds(given.get("target_lag", TARGET_LAG), "target_lag", where)
    if lag_ms <= 1000 * (Options(merged).get(DATA_LATENCY) or 0):
        raise ConfigError(f"{where}: target_lag has to be longer than data_latency, which every compaction leaves")
    return FleetTable(uri, Target(name, lag_ms, _window(given, where)), merged)


def _check_threshold(options: Mapping[str, str], where: str) -> None:
    """A T that cannot be used is an error of the file, and not one of each round."""
    asked = Options(options).text(THRESHOLD)
    try:
        if asked is not None:
            parse_threshold(asked)
    except InvalidThresholdError as error:
        raise ConfigError(f"{where}: option {THRESHOLD}: {error}") from None


def _window(given: Mapping[str, Any], where: str) -> DailyWindow | None:
    if "window" not in given:
        return None
    zone = zone_of(_text(given.get("time_zone", "UTC"), "time_zone", where), f"{where}: time_zone ")
    try:
        return DailyWindow.parse(_text(given["window"], "window", where), zone)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _section(document: Mapping[str, Any], name: str, keys: Sequence[str] | None, where: str) -> dict[str, Any]:
    section = document.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{where}: {name} is not a TOML table: write [{name}]")
    if keys is not None:
        check_keys(section, keys, f"{where}, [{name}]")
    return dict(section)


def _named_once(tables: Iterable[FleetTable], where: str) -> tuple[FleetTable, ...]:
    by_name: dict[str, FleetTable] = {}
    for table in tables:
        if table.name in by_name:
            raise ConfigError(
                f"{where}: {by_name[table.name].uri} and {table.uri} are both named {table.name!r}; set another name"
            )
        by_name[table.name] = table
    return tuple(by_name.values())


def _text(value: object, key: str, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {key} {value!r} is not a string")
    return value


def _seconds(value: object, key: str, where: str) -> int:
    return positive_duration_of(value, f"{where}: {key} ")


def _size(text: str, where: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{where}: spark_from {text!r} is not a size; use one such as 256MiB or 1GiB")
    return int(match[1]) * _UNITS[match[2]]
