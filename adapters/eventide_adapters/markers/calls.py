"""Calls a URL for each window that is done or reopened, by a POST of JSON.

    X-Eventide-Event       <marker>-<digest of the table's URI>-<number>: the same when the event is sent again
    X-Eventide-Signature   sha256=<HMAC-SHA256 of the body by the secret, in hex>, if there is a secret

Any answer of 200 to 299 takes the event. No redirect is followed. A call that fails, by the connection or an answer of 408,
429 or 500 and above, is tried three times. Messages name the host alone: the rest of a URL may be a secret.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from eventide_core.errors import ConfigError, MarkerError, format_timestamp
from eventide_core.ports import MarkerEvent

_TIMEOUT_SECONDS: Final = 10.0
_PAUSES_SECONDS: Final = (1.0, 3.0)  # so that three calls that time out end before the lease of a minute


@dataclass(frozen=True, slots=True)
class MarkerCalls:
    """Calls `url`. `table` is the URI that events name, `marker` the name of its marker, which each event's id begins with.

    `secret` signs, unless it is None. A call takes up to `timeout_seconds`. `sleep` waits between two calls.
    """

    url: str
    table: str
    marker: str
    secret: str | None
    timeout_seconds: float = _TIMEOUT_SECONDS
    sleep: Callable[[float], None] = time.sleep

    def tell(self, event: MarkerEvent) -> None:
        request = self._request(event)
        for pause in (*_PAUSES_SECONDS, None):
            failure, is_final = _call(request, self.timeout_seconds)
            if failure is None:
                return
            if pause is None or is_final:
                raise MarkerError(
                    f"{urlsplit(self.url).hostname} did not take the event {event.number}, that the window from "
                    f"{format_timestamp(event.begin_ms)} on is {event.kind}: {failure}; it is sent again later"
                )
            self.sleep(pause)

    def settle(self, begin_ms: int, end_ms: int, *, is_done: bool) -> None:
        """Does nothing: the receiver knows by its number that an event is old."""

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.table.encode()).hexdigest()[:8]

    def _request(self, event: MarkerEvent) -> Request:
        document = {
            "id": f"{self.marker}-{self._digest}-{event.number}",
            "number": event.number,
            "event": event.kind,
            "table": self.table,
            "begin": format_timestamp(event.begin_ms),
            "end": format_timestamp(event.end_ms),
            "begin_ms": event.begin_ms,
            "end_ms": event.end_ms,
        }
        if event.basis:
            document["basis"] = event.basis
        body = json.dumps(document).encode()
        headers = {"Content-Type": "application/json", "X-Eventide-Event": str(document["id"])}
        if self.secret is not None:
            signature = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
            headers["X-Eventide-Signature"] = f"sha256={signature}"
        return Request(self.url, body, headers, method="POST")


def check_url(url: str, option: str) -> None:
    """Raises ConfigError for a URL that nobody can call. The message doesn't show it: a part of it may be a secret."""
    try:
        host = urlsplit(url).hostname or ""
        is_possible = url.isascii() and url.isprintable() and " " not in url and all(host.split("."))
        is_possible = is_possible and urlsplit(url).port != 0
    except ValueError:
        is_possible = False
    if not is_possible:
        raise ConfigError(
            f"option {option} is not a URL that can be called: it needs a host, and %XX for other letters"
        )


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None: the answer is an error then."""


def _call(request: Request, timeout_seconds: float) -> tuple[str | None, bool]:
    """Why the call failed, None if it didn't; and whether another try is of no use."""
    try:
        with build_opener(_NoRedirects).open(request, timeout=timeout_seconds) as answer:
            answer.read(1)
    except HTTPError as error:
        error.close()
        return f"it answered {error.code}", error.code < 500 and error.code not in (408, 429)
    except (OSError, HTTPException) as error:  # URLError is an OSError; its text may have the URL
        reason = getattr(error, "reason", error)
        return type(reason if isinstance(reason, Exception) else error).__name__, False
    return None, False
