"""Mutants of queries over left-overs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eventide.testing.histories import put
from eventide_core.service.query import read
from eventide_core.service.query.read import QueryService
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.slice_read import QueryPlan, SliceRead
from eventide_core.table.timeline.file_system_view import FileSystemView
from support.mutants.mutant import PLAIN, Mutant, cleans, history, living, writes


def _copies_twice_in_increments(patch: pytest.MonkeyPatch) -> None:
    def every_slice(view: FileSystemView) -> tuple[FileSlice, ...]:
        return tuple(found for slices in view.slices.values() for found in slices)

    patch.setattr(read, "slices_of_span", every_slice)


def _without_left_overs(part: SliceRead) -> SliceRead:
    base = (part.base_path or "").rpartition("_")[2].removesuffix(".parquet")
    kept = tuple(log for log in part.log_paths if _instant_of(log[0]) != base)
    return replace(part, log_paths=kept)


def _instant_of(path: str) -> str:
    name = LogFileName.parse(path.rpartition("/")[2])
    assert name is not None
    return name.instant


def _query_skips_left_overs(query: str) -> Callable[[pytest.MonkeyPatch], None]:
    def is_wrong(patch: pytest.MonkeyPatch) -> None:
        real = getattr(QueryService, query)

        def asked(service: QueryService, *arguments: Any) -> QueryPlan:
            plan: QueryPlan = real(service, *arguments)
            return replace(plan, slices=tuple(_without_left_overs(part) for part in plan.slices))

        patch.setattr(QueryService, query, asked)

    return is_wrong


MUTANTS = (
    Mutant(
        "5",
        "an incremental query shows a copy and its original",
        _copies_twice_in_increments,
        history(*PLAIN, of=lambda: living(9)),
    ),
    Mutant(
        "5b",
        "an incremental query skips copies",
        _query_skips_left_overs("incremental"),
        history(*PLAIN, writes((put("k1", 9, "more"),)), cleans, of=lambda: living(9)),
    ),
    Mutant(
        "7",
        "time travel skips left-overs",
        _query_skips_left_overs("as_of"),
        history(*PLAIN, writes((put("k1", 9, "more"),)), of=lambda: living(9)),
    ),
)
