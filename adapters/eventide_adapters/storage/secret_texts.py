"""Masks secrets in the errors of a storage's package, which may quote requests with keys and signatures."""

import json
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from urllib.parse import quote

from eventide_core.errors import ConfigError

HIDDEN: Final = "***"
_SECRET_KEY: Final = re.compile(
    r"key|secret|token|passw|passphrase|pwd|sas|auth|credential|connection|signature", re.IGNORECASE
)
# Hudi's own keys with `key` in their name contain field names.
_HARMLESS_KEY: Final = re.compile(r"recordkey|keygen|foreign\.key|authority", re.IGNORECASE)
_KEY_ID: Final = re.compile(r"(?<!secret[._-])access[._-]key([._-]id)?$", re.IGNORECASE)
_SEPARATORS: Final = re.compile(r"[;,\s\"'{}]+")
# Shorter parts of a longer setting are words and numbers that reveal nothing.
_PART_LENGTH_MIN: Final = 8
_WORD_LENGTH_MAX: Final = 16
# Signed URLs, headers, and connection strings from any source.
_FORMS: Final = (
    re.compile(
        r"\b(?P<name>sig|signature|x-goog-signature|x-amz-signature|accountkey|sharedaccesssignature)=[^&;\s'\"]+",
        re.IGNORECASE,
    ),
    re.compile(r"\b(?P<name>bearer|sharedkey) +[^\s'\",}]+", re.IGNORECASE),
)
_USER_INFO: Final = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def may_be_secret(key: str) -> bool:
    """Whether the value of a setting that eventide doesn't declare may be a secret, judged by its key."""
    return _SECRET_KEY.search(key) is not None and _HARMLESS_KEY.search(key) is None


def secrets_in(
    settings: Iterable[tuple[str, str]], is_secret: Callable[[str], bool] = may_be_secret
) -> tuple[str, ...]:
    """The values that no text may show. The ID of an access key isn't a secret, and if it is short, it may be any word."""
    return tuple(
        value
        for key, value in settings
        if is_secret(key) and not (len(value) < _PART_LENGTH_MIN and _KEY_ID.search(key))
    )


def refuse_user(authority: str, what: str = "table") -> None:
    """Raises ConfigError if this part of the URI of a table, or of `what` it is, contains a user or a secret."""
    if "@" in authority:
        raise ConfigError(
            f"the {what}'s URI contains a user or a secret before `@`: set it as an option, or in the environment"
        )


def refuse_user_info(address: str | None, option: str) -> None:
    """Raises ConfigError for an address that contains a user or a secret, because addresses are in messages."""
    if address is not None and "@" in address:
        raise ConfigError(
            f"option {option} contains a user or a secret before `@`: set it as an option of its own, or in "
            "the environment"
        )


def harmless(failure: BaseException, secrets: Iterable[str]) -> BaseException | None:
    """The failure as the cause of another one; None if its traceback, or a traceback of its causes, would show a secret."""
    shown = "".join(traceback.format_exception(failure))
    return failure if without_secrets(shown, secrets) == shown else None


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text without these secrets in any quoted form, and without signatures in URLs and headers."""
    shown = {form for value in secrets for secret in _of(value) for form in _forms(secret)}
    for form in sorted(shown, key=len, reverse=True):
        if len(form) >= _WORD_LENGTH_MAX or not form.isalnum():
            text = text.replace(form, HIDDEN)
        elif form in text:  # a word, which another one may contain
            text = re.sub(rf"(?<![^\W_]){form}(?![^\W_])|(?<=\\[nrt]){form}(?![^\W_])", HIDDEN, text)
    for pattern in _FORMS:
        text = pattern.sub(rf"\g<name> {HIDDEN}", text)
    return _USER_INFO.sub(HIDDEN, text)


def _of(value: str) -> Iterator[str]:
    """A secret, and its parts if it is a connection string or the content of a key file."""
    yield from (value.strip(), value) if value.strip() else ()
    for part in _SEPARATORS.split(value):
        yield from (secret for secret in (part, part.partition("=")[2]) if len(secret) >= _PART_LENGTH_MIN)


def _forms(secret: str) -> frozenset[str]:
    """The quoted forms of a secret: plain, by Python, by JSON, in a URL, and by two of them in sequence."""
    once = _quoted(secret)
    return once.union(*map(_quoted, once))


def _quoted(text: str) -> frozenset[str]:
    return frozenset({text, repr(text)[1:-1], json.dumps(text)[1:-1], quote(text, safe="")})
