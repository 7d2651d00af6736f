"""Masks the secrets of the options in all output."""

from collections.abc import Iterable, Mapping
from functools import cache

from eventide_adapters.storage.secret_texts import may_be_secret, secrets_in, without_secrets


def is_secret(key: str) -> bool:
    """Whether the value of an option is a secret, by its declaration. If eventide doesn't declare it, its key decides."""
    return _declared().get(key, may_be_secret(key))


@cache
def _declared() -> Mapping[str, bool]:
    # Imported here: a run without options does not need them.
    from eventide.options.sections import all_options

    return {name: option.secret for option in all_options() for name in option.names}


class Redaction:
    """Knows the secrets of one run."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()

    def add_words(self, words: Iterable[str]) -> None:
        """Collects the secrets from the arguments of a command line: `key=value`, also as `--option=key=value`."""
        for word in words:
            key, equals, value = word.removeprefix("--option=").partition("=")
            if equals:
                self.add({key: value})

    def add(self, options: Mapping[str, str]) -> None:
        self._secrets.update(secrets_in(options.items(), is_secret))

    def clean(self, text: str) -> str:
        """The text with every known secret, signatures, and the user part of URIs masked."""
        return without_secrets(text, self._secrets)
