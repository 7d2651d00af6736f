"""A threshold that divides the log files of a table, so that a test of partial compaction really compacts partially."""

from eventide import Table
from eventide.results.plan import Plan
from eventide_core.errors import RefusedError


def dividing_plan(table: Table, event_time_field: str, link_mode: str) -> Plan:
    """Of the plans at every event time of the snapshot, the one that leaves most log files over and merges some.

    If every plan that merges something leaves nothing over, returns the plan that merges everything.
    """
    times = table.snapshot().to_arrow([event_time_field]).column(0).unique().drop_null().to_pylist()
    candidates = sorted(time for time in times if time is not None)
    step = 1 if link_mode == "prefix" else max(1, len(candidates) // 24)  # few of them allow back-dating
    best: tuple[int, Plan] | None = None
    for time in (*candidates[::step], candidates[-1] + 1):
        try:
            plan = table.plan_compaction(time, link_mode=link_mode)
        except RefusedError:  # back-dating is not possible at every threshold
            continue
        left = sum(len(operation.left_overs) for operation in plan.operations)
        merged = sum(len(operation.compacted) for operation in plan.operations)
        score = min(left, merged) if left else 0
        if merged and (best is None or score > best[0]):
            best = (score, plan)
    assert best is not None
    return best[1]
