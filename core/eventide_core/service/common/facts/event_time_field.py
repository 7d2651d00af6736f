"""The field of a table that contains the event time."""

from collections.abc import Mapping
from contextlib import suppress

from eventide_core.config import (
    EVENT_TIME_FIELD,
    EVENT_TIME_FORMAT,
    EVENT_TIME_ZONE,
    TRACK_EVENT_TIMES,
    UPSTREAM_EVENT_TIMES,
    Options,
)
from eventide_core.errors import ConfigError, RefusedError
from eventide_core.service.common.state.table import TableState
from eventide_core.table.records.event_time_texts import EventTimeTexts
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema


def event_time_field_of(state: TableState, options: Options) -> str:
    """The field that contains the event time.

    It is the published cut's field, otherwise the option's, otherwise the one in the table's settings (tables that
    eventide created have it, others don't), otherwise the table's (first) ordering field. Raises RefusedError for an
    option that names another field than the published cut's, ConfigError if no field is known, or if its type is
    not the type of a time.
    """
    asked, published = options.get(EVENT_TIME_FIELD), state.published_cut.event_time_field
    if published is not None and asked not in (None, published):
        raise RefusedError(
            f"option {EVENT_TIME_FIELD}={asked!r}: the published cut is in terms of {published!r}, and the "
            "two cannot be compared; omit the option, or first roll back or restore the table to before "
            "that compaction"
        )
    name = published or asked or state.config.event_time_field or state.config.first_ordering_field
    if name is None:
        raise ConfigError(
            f"the table has no ordering field, so its event-time field is unknown: set {EVENT_TIME_FIELD}"
        )
    schema = state.known_schema
    if schema is not None and not schema.may_hold_event_times(name):
        raise ConfigError(
            f"the field {name!r} has a type that cannot be an event time: set {EVENT_TIME_FIELD} to a field of times, "
            "dates, numbers or texts"
        )
    if schema is not None:
        _check_reading(state, schema, name, options)
    return name


def zone_notes(state: TableState, options: Options) -> tuple[str, ...]:
    """A sentence if the table's event times have no zone, and none is stated for them, so that they are read as UTC."""
    schema = state.known_schema
    if schema is None or state.config.event_time_texts.zone is not None:
        return ()
    with suppress(ConfigError, RefusedError):
        name = event_time_field_of(state, options)
        if schema.is_local_time(name):
            return (f"event times in {name!r} have no zone and are read as UTC: the table states no {EVENT_TIME_ZONE}",)
    return ()


def _check_reading(state: TableState, schema: AvroSchema, name: str, options: Options) -> None:
    """Raises ConfigError for options that the field doesn't need, RefusedError if the published cut was read otherwise."""
    asked = EventTimeTexts(options.text(EVENT_TIME_ZONE), options.text(EVENT_TIME_FORMAT))
    unused = asked.why_unused(name, schema)
    if unused is not None:
        raise ConfigError(f"option {asked}: {unused}")
    texts = state.config.event_time_texts
    published = state.published_cut.event_times if schema.is_local_time(name) else None
    if published is not None and texts.contradicts(published, name, schema):
        raise RefusedError(
            f"{texts}: the published cut is in terms of the event times {published!r}, of UTC if it has no zone, and the "
            f"two cannot be compared; state that zone or none as {EVENT_TIME_ZONE}, or first roll back or restore the table "
            "to before that compaction"
        )


def write_event_time_field(state: TableState, schema: AvroSchema, options: Options) -> str | None:
    """The field whose event times a write records; None if none is known.

    Raises ConfigError for an option that names no field of the schema, or that the field doesn't need; RefusedError if the
    published cut was read otherwise.
    """
    asked = options.get(EVENT_TIME_FIELD)
    if asked is not None:
        schema.is_nullable(asked, EVENT_TIME_FIELD)
    name = asked or state.config.event_time_field or state.config.first_ordering_field
    if name is not None:
        _check_reading(state, schema, name, options)
    return name


def has_named_event_time(state: TableState, options: Options) -> bool:
    """Whether the event-time field is more than the default, which is the ordering field and need not hold times."""
    return (
        options.get(EVENT_TIME_FIELD) or state.config.event_time_field or state.published_cut.event_time_field
    ) is not None


def are_stats_proof(shape: RecordShape, options: Options, properties: Mapping[str, str]) -> bool:
    """Whether write stats of Hudi state the event times of every record.

    They do if the user gives both options of the writers that track them, the field is never null, and its type can hold
    nothing but times: Hudi leaves a text or a floating number that it cannot read out of its stats. It takes local times for
    UTC. To name the field is not enough: an option does that, too, and nothing in the table states which field a writer
    tracked. They never do if the options or the table's settings say that writers pass on the event times of upstream
    commits. Raises ConfigError if the table has no such field.
    """
    if options.get(UPSTREAM_EVENT_TIMES) or properties.get(str(UPSTREAM_EVENT_TIMES), "").lower() == "true":
        return False
    schema, field = shape.schema, shape.event_time_field or ""
    is_never_null = not schema.is_nullable(field, EVENT_TIME_FIELD)
    is_tracked = options.text(TRACK_EVENT_TIMES) is not None and options.get(TRACK_EVENT_TIMES)
    is_named = options.get(EVENT_TIME_FIELD) == field == shape.event_time_source
    return is_never_null and is_tracked and is_named and schema.holds_times_only(field)
