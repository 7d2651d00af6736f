"""Takes secrets out of what a storage's package says when it fails, which may quote requests with keys and signatures."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

HIDDEN: Final = "***"
_SECRET_KEY: Final = re.compile(r"key|secret|token|password|sas|credential|connection", re.IGNORECASE)
_SEPARATORS: Final = re.compile(r"[;,\s\"'{}]+")
# Shorter parts of a longer setting are words and numbers that say nothing.
_PART_LENGTH_MIN: Final = 8
# Signed URLs, headers and connection strings, whoever gave them.
_FORMS: Final = (
    re.compile(
        r"\b(?P<name>sig|signature|x-goog-signature|x-amz-signature|accountkey|sharedaccesssignature)=[^&;\s'\"]+",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?P<name>bearer|sharedkey) +[^\s'\",}]+", re.IGNORECASE),
)
_USER_INFO: Final = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def without_secrets(text: str, settings: Iterable[tuple[str, str]]) -> str:
    """The text without the values of settings whose keys tell of secrets, and without signatures in URLs and headers."""
    secrets = {secret for key, value in settings if _SECRET_KEY.search(key) for secret in _of(value.strip())}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    for form in _FORMS:
        text = form.sub(rf"\g<name> {HIDDEN}", text)
    return _USER_INFO.sub(HIDDEN, text)


def _of(value: str) -> Iterator[str]:
    """A secret, and its parts where it is a connection string or the content of a key file."""
    if value:
        yield value
    for part in _SEPARATORS.split(value):
        yield from (found for found in (part, part.partition("=")[2]) if len(found) >= _PART_LENGTH_MIN)
