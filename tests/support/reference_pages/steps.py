"""The steps of every action, from the table that runs them."""

from eventide_core.service.common.transaction.steps import FENCES, Fence, Kind
from support.reference_pages.step_texts import OTHER_FILES, STEPS, Step

_HEAD = """# Steps of every action

<!-- Made by `./run docs` from tests/support/reference_pages/step_texts.py: change it there. -->

Every file that an action puts, and what happens to one that comes too late: its process was paused before the put,
until its lock and heartbeat had expired and others had rolled its instant back (*undone*), completed it (*executed*),
or archived it ([Paused processes](../crashes.md#paused-processes)). `service/common/transaction/action` puts all files
of timelines, if absent. W is the instant of a write, C of a compaction, M of a compaction of the metadata table, c of a
clean, r of a rollback, s of a restore. The rules are in `core/eventide_core/table/timeline/strays.py`.
"""
_FENCE_TEXTS = {
    Fence.LEASE: "withdrawn if the lock was lost and others have undone or archived the instant",
    Fence.REQUEST: "withdrawn if the requested file is gone",
    Fence.CALLER: "the next check of the lock",
}


def steps_page() -> str:
    """A table of the timelines' files, and one of the others."""
    rows = [_row(kind, FENCES[kind, state], step) for (kind, state), step in STEPS.items()]
    others = [f"| {other.file} | {_module(other.module)} | {other.put} | {other.late} |" for other in OTHER_FILES]
    return (
        f"{_HEAD}\n## Files of the timelines\n\n"
        "| action | file | put by the holder of | after the put | a late one that stays, if the process dies | ended by | "
        "a crash after it leaves |\n|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n## Other files\n\n"
        "| file | put in | how | a late one |\n|---|---|---|---|\n" + "\n".join(others) + "\n"
    )


def _row(kind: Kind, fence: Fence, step: Step) -> str:
    cells = (
        kind,
        f"`{step.file.partition(',')[0]}`",
        step.lock,
        _FENCE_TEXTS[fence],
        step.late,
        step.ended_by,
        step.crash,
    )
    return f"| {' | '.join(cells)} |"


def _module(names: str) -> str:
    if names.startswith("adapters: "):
        return f"`adapters/eventide_adapters/{names.removeprefix('adapters: ')}`"
    return ", ".join(f"`service/{name}`" for name in names.split(", "))
