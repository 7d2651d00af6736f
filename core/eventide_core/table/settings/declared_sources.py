"""The sources that a table declares in its settings: what has to vouch that everything before T has come.

eventide.source.<name>.kind        stated, or another kind of source (ports.ArrivalSource)
eventide.source.<name>.<setting>   what that kind needs, such as kafka's topic; never a secret
eventide.source.<name>.idle        a duration: how long the silence of this source counts as progress
eventide.source.<name>.forgotten   an instant: statements of commits up to it don't count
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from eventide_core.errors import ConfigError
from eventide_core.table.timeline.source_statements import STATEMENT_PREFIX, Statement

STATED: Final = "stated"
TABLE: Final = "table"
IDLE: Final = "idle"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_KIND: Final = "kind"
_FORGOTTEN: Final = "forgotten"
_SECRET: Final = re.compile(
    r"passw|pwd|passphrase|secret|token|credential|jaas|auth|dsn|private|key_?pem|(^|[._-])(api_?)?key$|(^|[._-])sas$",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(r"://[^/@\s]*@|PRIVATE KEY")
_WHERE: Final = re.compile(r"server|url|uri|host|endpoint|address|broker|protocol|ssl|sasl|tls|verif", re.IGNORECASE)
"""Settings that say to whom a secret is shown, and how well that is checked."""


@dataclass(frozen=True, slots=True)
class DeclaredSource:
    """A source by its name. `kind` is empty if the table doesn't declare it; `settings` are by name.

    `forgotten_at`: statements up to that instant don't count.
    """

    name: str
    kind: str = ""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    forgotten_at: str = ""

    def counts(self, statement: Statement | None) -> Statement | None:
        """The statement of this source, unless it was forgotten since."""
        return None if statement is None or statement.stated_at <= self.forgotten_at else statement

    @property
    def is_declared(self) -> bool:
        """Whether it is needed without a statement, too."""
        return bool(self.kind)


def declared_sources(properties: Mapping[str, str]) -> dict[str, DeclaredSource]:
    """What the settings say of each source, by its name."""
    given: dict[str, dict[str, str]] = {}
    for key, value in properties.items():
        if key.startswith(STATEMENT_PREFIX):
            name, _, setting = key.removeprefix(STATEMENT_PREFIX).rpartition(".")
            given.setdefault(name, {})[setting] = value
    return {
        name: DeclaredSource(
            name,
            settings.get(_KIND, ""),
            {key: value for key, value in settings.items() if key not in (_KIND, _FORGOTTEN)},
            settings.get(_FORGOTTEN, ""),
        )
        for name, settings in sorted(given.items())
    }


def sources_for(properties: Mapping[str, str], options: Mapping[str, str]) -> dict[str, DeclaredSource]:
    """What the table's settings and the options say of each source, by its name.

    Whoever writes the table's settings must not get a secret of the options: these say to whom it is shown. Raises
    ConfigError.
    """
    declared = declared_sources({**properties, **options})
    for name, given in declared_sources(options).items():
        secret = next((setting for setting in given.settings if _SECRET.search(setting)), None)
        told = next((one for one in declared[name].settings if _WHERE.search(one) and one not in given.settings), None)
        if secret is not None and told is not None:
            raise ConfigError(
                f"source {name}: an option gives it {secret}, and the table alone says {told}, which could lead the secret "
                f"elsewhere; give {_key(name, told)} as an option, too"
            )
    return declared


def declaration(name: str, kind: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a table that declare a source. Raises ConfigError."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"source {name[:80]!r}: a name has letters, digits, `_` and `-`, in parts with dots between")
    for setting, value in settings.items():
        if not _NAME.fullmatch(setting) or "." in setting or setting in (_KIND, _FORGOTTEN):
            raise ConfigError(f"source {name}: {setting[:80]!r} cannot name a setting: use letters, digits and `_`")
        if _SECRET.search(setting) or _SECRET_VALUE.search(value):
            raise ConfigError(
                f"source {name}: {setting} would be kept in the table, where every reader sees it; pass it as an option of "
                "the command instead"
            )
    return {_key(name, setting): value for setting, value in {_KIND: kind, **settings}.items()}


def forgetting(name: str, properties: Mapping[str, str], last_statement: str) -> dict[str, str | None]:
    """The changes of the settings that forget a source: what declares it, and statements up to that instant."""
    changes: dict[str, str | None] = dict.fromkeys(
        key for key in properties if key.startswith(STATEMENT_PREFIX) and key.rpartition(".")[0] == _key(name, "")[:-1]
    )
    if last_statement:
        changes[_key(name, _FORGOTTEN)] = last_statement
    return changes


def _key(name: str, setting: str) -> str:
    return f"{STATEMENT_PREFIX}{name}.{setting}"
