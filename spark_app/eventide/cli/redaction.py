"""Keeps the secrets among the options out of every text that is shown."""

import re
from collections.abc import Iterable, Mapping

_SECRET_KEY = re.compile(r"key|secret|token|password|sas|authorization|credential", re.IGNORECASE)
# Hudi's own keys with `key` in their name hold field names.
_HARMLESS_KEY = re.compile(r"recordkey|keygenerator|keygen", re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")

HIDDEN = "***"


class Redaction:
    """Knows the secrets of one run."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()

    def add_words(self, words: Iterable[str]) -> None:
        """Takes the secrets from the words of a command line: `key=value`, also as `--option=key=value`."""
        for word in words:
            key, _, value = word.removeprefix("--option=").partition("=")
            self.add({key: value})

    def add(self, options: Mapping[str, str]) -> None:
        for key, value in options.items():
            if _SECRET_KEY.search(key) and not _HARMLESS_KEY.search(key):
                # Also as `repr` shows it, and without the space around it.
                self._secrets.update(text for text in (value, value.strip(), repr(value)[1:-1]) if text)

    def clean(self, text: str) -> str:
        """The text with every known secret, and the user part of URIs, hidden."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return _USER_INFO.sub(HIDDEN, text)
