"""The result of a verification: for each named check, whether it passed and what it found.

A check is a value: the invariant it stands for, the counterexample it stands against, and a function from facts to what it
says. What it says are findings (damage), remarks (harmless), or why it could not look at all, or not at everything.

There are three outcomes: a check failed if it found damage. Otherwise, it is not checked if it had to leave out anything
that it could be wrong about. Only then has it passed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from eventide_core.action.verification.facts import TableFacts
from eventide_core.errors import counted


class Status(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Finding:
    """Damage: the file, directory or instant, the problem, and the cure."""

    path: str
    problem: str
    cure: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Information for the user that breaks no invariant."""

    text: str


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Why a check did not run, or what it had to leave out."""

    reason: str


Observation = Finding | Remark | Unchecked


@dataclass(frozen=True, slots=True)
class Check:
    """A named invariant. `against` is the counterexample.

    `is_deep`: it reads records; `is_of_slices`: those of the latest slices.
    """

    name: str
    invariant: str
    promise: str
    against: str
    observe: Callable[[TableFacts], Iterable[Observation]]
    is_deep: bool = False
    is_of_slices: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check. `remarks` also state why it did not run, or what it left out."""

    name: str
    invariant: str
    promise: str
    status: Status
    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The results of all checks. `is_deep`: records were read, too."""

    checks: tuple[CheckResult, ...]
    is_deep: bool

    @property
    def ok(self) -> bool:
        """Whether no check failed. Says nothing about what was not checked."""
        return not self.failed

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.checks if check.status is Status.FAILED)

    @property
    def not_checked(self) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.checks if check.status is Status.NOT_CHECKED)

    def __repr__(self) -> str:
        failed = f", failed: {', '.join(check.name for check in self.failed)}" if self.failed else ""
        unchecked = f", {len(self.not_checked)} not checked" if self.not_checked else ""
        return f"<Verification {'ok' if self.ok else 'not ok'}: {len(self.checks)} checks{failed}{unchecked}>"


def result_of(check: Check, facts: TableFacts) -> CheckResult:
    """The check's result for these facts."""
    if check.is_deep and facts.records is None:
        return _answer(check, (Unchecked("records were not read: use --deep"),))
    left_out = len(facts.latest_slices) - len(facts.whole_slices) if check.is_of_slices else 0
    unchecked = (
        (Unchecked(f"left out {counted(left_out, 'file slice')} with missing or damaged files"),) if left_out else ()
    )
    return _answer(check, (*check.observe(facts), *unchecked))


def _answer(check: Check, said: tuple[Observation, ...]) -> CheckResult:
    findings = tuple(one for one in said if isinstance(one, Finding))
    unchecked = tuple(one.reason for one in said if isinstance(one, Unchecked))
    remarks = (*unchecked, *(one.text for one in said if isinstance(one, Remark)))
    status = Status.FAILED if findings else Status.NOT_CHECKED if unchecked else Status.PASSED
    return CheckResult(check.name, check.invariant, check.promise, status, findings, remarks)
