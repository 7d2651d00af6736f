"""Marks the windows of a table as done where the options say so."""

import hashlib
from collections.abc import Callable

from eventide.bootstrap import Application
from eventide.table.window import window_terms
from eventide_adapters.markers.calls import MarkerCalls, check_url
from eventide_adapters.markers.files import MarkerFiles, check_name
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.secret_texts import refuse_user_info
from eventide_core.action.windows.progress import LatePolicy
from eventide_core.config import (
    MARKER_EVERY,
    MARKER_LEASE,
    MARKER_NAME,
    MARKER_SECRET,
    MARKER_SINCE,
    MARKER_TO,
    MARKER_ZONE,
    Options,
)
from eventide_core.errors import ConfigError
from eventide_core.ports import MarkerEvent, MarkerTarget
from eventide_core.table.timeline.outcome_file import OUTCOME_DIRECTORY


def mark_done(
    application: Application, options: Options, goes_on: Callable[[], bool] = lambda: True
) -> tuple[MarkerEvent, ...]:
    """The windows that were marked as done or reopened, in their order. Raises what `DoneMarkers.mark` raises.

    It is asked before each one whether it `goes_on`.
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
    zone_of_days, root = terms.calendar.zone, application.storage.root
    check_name(name, zone_of_days, terms.calendar.seconds, terms.calendar.begin_of)
    identity = "\n".join((str(terms.calendar.seconds), zone, options.get(MARKER_TO) or "", name))
    marker = f"done-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    calls = _calls(options, application.storage.root, marker)
    if calls is not None:
        target: MarkerTarget = calls
    elif (address := options.get(MARKER_TO)) is None:
        target = MarkerFiles(application.storage, name, zone_of_days, root, f"{OUTCOME_DIRECTORY}/done")
    else:
        target = MarkerFiles(open_storage(address, options, what="markers' directory"), name, zone_of_days, root)
    return application.done_markers(target).mark(marker, terms, goes_on)


def _calls(options: Options, table: str, marker: str) -> MarkerCalls | None:
    """The calls of a URL; None if the markers are files. Raises ConfigError."""
    address, secret = options.get(MARKER_TO), options.get(MARKER_SECRET)
    if address is not None and address.startswith(("http://", "https://")):
        refuse_user_info(address, str(MARKER_TO))
        check_url(address, str(MARKER_TO))
        return MarkerCalls(address, table, marker, secret)
    if secret is not None:
        raise ConfigError(f"option {MARKER_SECRET}: only calls are signed, so {MARKER_TO} has to be a URL")
    return None
