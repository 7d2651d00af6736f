"""Measures one made table in a process of its own: CPU seconds of each service, and the peak of the memory.

    python -m benchmarks.planning.case '{"version": 9, "groups": 10000, "logs": 10, "partitions": 100, "has_ranges": true,
        "is_ours": true}'

prints one JSON document. With a second argument, a service's name, its profile goes to stderr.
"""

import cProfile
import gc
import json
import pstats
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.planning.made_table import START_MS, STEP_MS, MadeStorage, MadeTable
from eventide.bootstrap import Application, assemble
from eventide.cli import spare_collector
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.freshness.freshness import freshness
from eventide_core.config import LinkChoice
from eventide_core.ports import MergeResult, Storage
from eventide_core.service.compaction.commit import commit_metadata
from eventide_core.service.compaction.scheduling.draft_plan import DraftPlan
from eventide_core.table.timeline.contents.plans import CompactionPlan

_NOW_MS = START_MS + 10_000 * STEP_MS


class _Clock:
    def now_ms(self) -> int:
        return _NOW_MS

    def sleep(self, milliseconds: int) -> None:
        raise AssertionError(f"planning does not wait {milliseconds} ms")

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return 0


class _Lock:
    """The lock of a table that nobody else has, and its own lease."""

    def acquire(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def check(self) -> None: ...


@dataclass(slots=True)
class Meter:
    """What each service cost, by name. The profile of the one that is named goes to stderr."""

    storage: MadeStorage
    profiled: str | None
    found: dict[str, Any] = field(default_factory=dict[str, Any])

    def run(self, name: str, service: Callable[[], Any]) -> Any:
        calls = self.storage.calls.copy()
        profile = cProfile.Profile() if name == self.profiled else None
        wall, cpu = time.perf_counter(), time.process_time()
        if profile is not None:
            profile.enable()
        answer = service()
        if profile is not None:
            profile.disable()
            pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(35)
        self.found[name] = {
            "cpu_s": round(time.process_time() - cpu, 3),
            "wall_s": round(time.perf_counter() - wall, 3),
            "peak_mb": round(_peak_mb()),
            "calls": dict(self.storage.calls - calls),
        }
        return answer


def measure(table: MadeTable, profiled: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        storage = MadeStorage(table, Path(directory))
        storage.make()
        gc.collect()
        before = _peak_mb()
        meter = Meter(storage, profiled)
        found, run = meter.found, meter.run
        app, request = application_over(storage), CompactionRequest(table.middle_ms, None, LinkChoice.AUTO)
        draft: DraftPlan = run("plan", lambda: app.scheduler.plan(request))
        assert len(draft.plan.operations) == table.groups, draft.idle
        run("plan again", lambda: app.scheduler.plan(request))
        state = run("state", app.state)
        run("freshness", lambda: app.freshness.now(state))
        run("clean", lambda: app.cleaner.plan(None))
        run("schedule", lambda: app.scheduler.schedule(request))
        codec = HudiMetadataCodec()
        data = run("encode plan", lambda: codec.encode_plan(draft.plan))
        run("decode plan", lambda: codec.decode_plan(data, "made", draft.plan.instant))
        committed = run("encode commit", lambda: _commit(codec, table, draft.plan))
        found["bytes"] = {"plan": len(data), "commit": len(committed)}
        found["before_mb"] = round(before)
        return found


def application_over(storage: Storage, options: Mapping[str, str] = {}) -> Application:
    return assemble(
        storage.root,
        {"hoodie.payload.event.time.field": "ts", "hoodie.write.track.event.time.watermark": "true", **options},
        storage=storage,
        lock=_Lock(),
        clock=_Clock(),
    )


def _commit(codec: HudiMetadataCodec, table: MadeTable, plan: CompactionPlan) -> bytes:
    results = [
        MergeResult(op.path_of(op.new_base_name), 100_000_000, 1000, 0, 1000, 0, 1000, 10, None, 0)
        for op in plan.operations
    ]
    commit = commit_metadata(plan, results, freshness(plan.cut_ms, (), 0), event_times=None, settings={})
    return codec.encode_commit(commit, table.version)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    spare_collector()  # as the command line does
    print(json.dumps(measure(MadeTable(**json.loads(sys.argv[1])), sys.argv[2] if len(sys.argv) > 2 else None)))
