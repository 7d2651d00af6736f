"""The result of a verification: for each named check, whether it passed and what it found.

A check is a value: its invariant, the counterexample that it would find, and a function from facts to its
report: findings (damage), remarks (harmless), or why it could check nothing, or not everything.

A check failed if it found damage. Otherwise, it is not supported if it had to leave out records that eventide can't read
because of a feature that it lacks, and not checked if it had to leave out anything else that it could be wrong about. Only
then has it passed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, TypeAlias

from eventide_core.action.verification.facts import TableFacts
from eventide_core.cure import Cure
from eventide_core.errors import counted
from eventide_core.table.files.file_name import BaseFileName, LogFileName


class Status(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_SUPPORTED = "not supported"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """Damage: the file, directory or instant (`path`), the `problem`, and the `cure`.

    The problem is a clause of which the path is the subject. The cure is a sentence with the call that helps (cure.py).
    """

    path: str
    problem: str
    cure: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Information for the user that breaks no invariant. `text` names what it is about."""

    text: str


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Why a check did not run, or what it had to leave out."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """What a check had to leave out because eventide does not support it."""

    reason: str


Observation = Finding | Remark | Unchecked | Unsupported


@dataclass(frozen=True, slots=True)
class Check:
    """A named invariant. docs/verification.md has the counterexample of each.

    `invariant` has its numbers in docs/invariants.md, such as `I10, I13`; `promise` states in words what holds if the check
    passes. `observe` yields its report on a table, in the order of the report, and nothing if all is well. `is_deep`: it
    reads records; `is_of_slices`: the latest slices' records.
    """

    name: str
    invariant: str
    promise: str
    observe: Callable[[TableFacts], Iterable[Observation]]
    is_deep: bool = False
    is_of_slices: bool = False


_Observe: TypeAlias = Callable[[TableFacts], Iterable[Observation]]


def check(name: str, invariant: str, promise: str) -> Callable[[_Observe], Check]:
    """Makes a check of the function that observes it."""
    return partial(Check, name, invariant, promise)


def deep_check(name: str, invariant: str, promise: str, *, is_of_slices: bool = True) -> Callable[[_Observe], Check]:
    """Makes a check that reads records, by default the latest slices', of the function that observes it."""
    return partial(Check, name, invariant, promise, is_deep=True, is_of_slices=is_of_slices)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check, with its `invariant` and `promise` (`Check`).

    `status` is the worst of its reports. `remarks` also state why it did not run, or what it left out; these come first.
    `findings` are there exactly if it failed.
    """

    name: str
    invariant: str
    promise: str
    status: Status
    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The results of all `checks`, in report order, also of those that did not run. `is_deep`: records were read, too."""

    checks: tuple[CheckResult, ...]
    is_deep: bool

    @property
    def ok(self) -> bool:
        """Whether no check failed. What was not checked, or is not supported, doesn't count."""
        return not self.failed

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.checks if check.status is Status.FAILED)

    @property
    def not_supported(self) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.checks if check.status is Status.NOT_SUPPORTED)

    @property
    def not_checked(self) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.checks if check.status is Status.NOT_CHECKED)

    def __repr__(self) -> str:
        failed = f", failed: {', '.join(check.name for check in self.failed)}" if self.failed else ""
        unsupported = f", {len(self.not_supported)} not supported" if self.not_supported else ""
        unchecked = f", {len(self.not_checked)} not checked" if self.not_checked else ""
        return (
            f"<Verification {'ok' if self.ok else 'not ok'}: {len(self.checks)} checks{failed}{unsupported}{unchecked}>"
        )


def result_of(check: Check, facts: TableFacts) -> CheckResult:
    """The check's result for these facts."""
    if check.is_deep and facts.records is None:
        return _answer(check, (Unchecked(f"records were not read: {Cure.verify_deep()} reads them"),))
    return _answer(check, (*check.observe(facts), *_left_out(check, facts)))


def _left_out(check: Check, facts: TableFacts) -> Iterable[Unchecked | Unsupported]:
    count = len(facts.latest_slices) - len(facts.whole_slices) if check.is_of_slices else 0
    if count:
        yield Unchecked(f"left out {counted(count, 'file slice')} with missing or damaged files")
    if check.is_deep and facts.records is not None and facts.records.unsupported:
        place, reason = next(iter(facts.records.unsupported.items()))
        places = counted(len(facts.records.unsupported), "place")
        yield Unsupported(f"left out {places} with what eventide does not support: {place}: {reason}")


def _answer(check: Check, observations: tuple[Observation, ...]) -> CheckResult:
    findings = tuple(one for one in observations if isinstance(one, Finding))
    unsupported = tuple(one.reason for one in observations if isinstance(one, Unsupported))
    unchecked = tuple(one.reason for one in observations if isinstance(one, Unchecked))
    remarks = (*unsupported, *unchecked, *(one.text for one in observations if isinstance(one, Remark)))
    status = Status.PASSED
    for there, outcome in (
        (unchecked, Status.NOT_CHECKED),
        (unsupported, Status.NOT_SUPPORTED),
        (findings, Status.FAILED),
    ):
        if there:
            status = outcome
    return CheckResult(check.name, check.invariant, check.promise, status, findings, remarks)


_COPY: Final = "restore the file from a copy, which loses nothing"
_SHOWN: Final = 3


def restore_cure(facts: TableFacts, path: str) -> str:
    """Restores the file, or the table to the latest savepoint before the file; names the commits that the latter loses."""
    name = path.rpartition("/")[2]
    parsed = BaseFileName.parse(name) or LogFileName.parse(name)
    times = [time for time, _ in facts.committed.get(path, ())] or ([parsed.instant] if parsed is not None else [])
    if not times:
        return f"{_COPY}; or the table to a savepoint from before the damage, which loses every commit since"
    savepoint = max((saved for saved in facts.removals.saved if saved < min(times)), default=None)
    if savepoint is None:
        return f"{_COPY}; no savepoint is older than the file"
    writes = sorted(i.requested_time for i in facts.timeline.writes if i.requested_time not in facts.plans)
    lost = [time for time in writes if time > savepoint]
    shown = ", ".join(lost[:_SHOWN]) + (f", ... {lost[-1]}" if len(lost) > _SHOWN else "")
    return f"{_COPY}; or the table to the savepoint {savepoint}, which loses {counted(len(lost), 'commit')}: {shown}"
