"""Checks of `hoodie.properties`: that it is complete, and agrees with the records."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.result import Finding, Observation, Unchecked, check, deep_check
from eventide_core.cure import Cure
from eventide_core.errors import CorruptTimelineError
from eventide_core.table.files.file_name import path_in
from eventide_core.table.property_keys import RECORDKEY_FIELDS, TABLE_VERSION
from eventide_core.table.settings.properties import BACKUP_PATH, PROPERTIES_PATH
from eventide_core.table.timeline.contents.checksums import Checksums

_COPY_BACKUP = f"copy {BACKUP_PATH} over it, as {Cure.repair()} does; this loses nothing"
_RESTORE = (
    f"restore the setting, as {Cure.repair()} does where a commit of eventide records it; with the wrong setting, writes "
    "create keys that exist already, and merges keep the wrong version"
)


@check("settings", "I1", "hoodie.properties is complete, and keys, orders and partitions records as every commit did")
def check_settings(facts: TableFacts) -> Iterator[Observation]:
    """1. The file is complete. 2. The fields that it names exist. 3. They are as the commits of eventide have them."""
    if facts.settings_problem is not None:
        yield Finding(PROPERTIES_PATH, f"{facts.settings_problem}: readers use {BACKUP_PATH}", _COPY_BACKUP)
    changed = changed_settings(facts)
    for key, value in sorted(changed.items()):
        before = _stated(key, {key: value} if value else {})
        problem = f"has {_stated(key, facts.settings)}, but {before} in a commit of eventide"
        yield Finding(PROPERTIES_PATH, problem, _RESTORE)
    columns = _columns(facts)
    for key, names in sorted(facts.settings.items()):
        if key in changed or not columns or not key.endswith(".fields"):
            continue
        for name in names.split(","):
            if name.strip().split(".")[0].lower() not in columns:  # Spark SQL ignores the case
                yield Finding(
                    PROPERTIES_PATH, f"has {key}={names}, but the table has no column {name.strip()}", _RESTORE
                )


def changed_settings(facts: TableFacts) -> Mapping[str, str | None]:
    """The settings that the latest commit of eventide records with another value, and that value; None if it had none.

    An upgrade of the table may change them: only a commit of the same table version counts.
    """
    for _, commit in sorted(facts.commits.items(), reverse=True):
        with suppress(CorruptTimelineError):  # the check of the timeline reports it
            recorded = Checksums.of(commit).settings
            if not recorded:
                continue
            if recorded.get(TABLE_VERSION) != facts.settings[TABLE_VERSION]:
                return {}
            keys = recorded.keys() | facts.settings.keys()
            return {key: recorded.get(key) for key in keys if recorded.get(key) != facts.settings.get(key)}
    return {}


def _columns(facts: TableFacts) -> frozenset[str]:
    """The columns of the latest commit that states a schema, in lower case; empty if none does."""
    for _, commit in sorted(facts.commits.items(), reverse=True):
        if commit.schema:
            with suppress(ValueError, LookupError, TypeError, RecursionError):
                return frozenset(str(field["name"]).lower() for field in commit.schema.parsed["fields"])
    return frozenset()


def _stated(key: str, settings: Mapping[str, str]) -> str:
    return f"{key}={settings[key]}" if key in settings else f"no {key}"


@deep_check("record-keys", "I1", "the record key of each row in a base file matches its key fields")
def check_record_keys(facts: TableFacts) -> Iterator[Observation]:
    assert facts.records is not None, "a deep check runs only on records"
    wrong = [(audit, audit.wrong_keys) for audit in facts.records.audits if audit.wrong_keys is not None]
    if wrong:
        audit, stray = wrong[0]
        count = sum(keys.count for _, keys in wrong)
        problem = (
            f"has {_stated(RECORDKEY_FIELDS, facts.settings)}, but these fields don't give {count} record keys, "
            f"such as {stray.example!r} in {path_in(audit.partition, audit.file_id)}"
        )
        yield Finding(PROPERTIES_PATH, problem, f"{_RESTORE}; if nobody edited it, restore the base file")
    if not facts.records.compares_keys:
        yield Unchecked("the table stores no record keys, or its key generator is not known")
