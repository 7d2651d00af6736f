"""Marks the windows of a table as done where the options say so."""

import hashlib

from eventide.bootstrap import Application
from eventide.table.window import window_terms
from eventide_adapters.markers.files import check_name
from eventide_adapters.markers.open import open_target
from eventide_core.action.windows.progress import LatePolicy
from eventide_core.config import (
    MARKER_EVERY,
    MARKER_LEASE,
    MARKER_NAME,
    MARKER_SINCE,
    MARKER_TO,
    MARKER_ZONE,
    Options,
)
from eventide_core.errors import ConfigError
from eventide_core.ports import MarkerEvent


def mark_done(application: Application, options: Options) -> tuple[MarkerEvent, ...]:
    """The windows that were marked as done or reopened, in their order. Raises what `DoneMarkers.mark` raises.

    What has been marked is known by its length, zone, address and name: with another one, the markers begin again.
    """
    every, name, zone = options.get(MARKER_EVERY), options.get(MARKER_NAME), options.get(MARKER_ZONE)
    if every is None:
        raise ConfigError(f"windows have no length: set {MARKER_EVERY}, such as 1h")
    since, lease = options.get(MARKER_SINCE), options.get(MARKER_LEASE)
    terms = window_terms(
        every,
        time_zone=zone,
        since=since,
        late=LatePolicy.REDELIVER,
        corrections_for=None,
        lease=lease,
        keep="7d",
    )
    check_name(name, terms.calendar.zone, terms.calendar.seconds, terms.calendar.begin_of(application.clock.now_ms()))
    identity = "\n".join((str(terms.calendar.seconds), zone, options.get(MARKER_TO) or "", name))
    marker = f"done-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    target = open_target(options, application.storage, marker, name, terms.calendar.zone)
    return application.done_markers(target).mark(marker, terms)
