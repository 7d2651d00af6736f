"""Keeps the secrets among the options out of every text that is shown."""

from collections.abc import Iterable, Mapping

from eventide_adapters.storage.secret_texts import is_secret, without_secrets


class Redaction:
    """Knows the secrets of one run."""

    def __init__(self) -> None:
        self._secrets: set[tuple[str, str]] = set()

    def add_words(self, words: Iterable[str]) -> None:
        """Takes the secrets from the words of a command line: `key=value`, also as `--option=key=value`."""
        for word in words:
            key, _, value = word.removeprefix("--option=").partition("=")
            self.add({key: value})

    def add(self, options: Mapping[str, str]) -> None:
        self._secrets.update((key, value) for key, value in options.items() if is_secret(key))

    def clean(self, text: str) -> str:
        """The text with every known secret, signatures, and the user part of URIs, hidden."""
        return without_secrets(text, self._secrets)
