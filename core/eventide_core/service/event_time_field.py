"""Which field of a table holds the event time."""

from eventide_core.config import EVENT_TIME_FIELD, Options
from eventide_core.errors import ConfigError
from eventide_core.service.table import TableState


def event_time_field_of(state: TableState, options: Options) -> str:
    """The field that holds the event time: the option's, else the table's ordering field. Raises ConfigError."""
    name = options.text(EVENT_TIME_FIELD) or state.config.ordering_field
    if name is None:
        raise ConfigError(
            f"the table has no ordering field, so it does not tell its event-time field: give {EVENT_TIME_FIELD}"
        )
    return name
