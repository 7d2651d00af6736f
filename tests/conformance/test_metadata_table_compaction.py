"""Metadata tables of real Hudi that eventide compacts: Hudi reads by them, writes on, and ends what eventide began.

Every read is made with and without the metadata table, which must agree.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.rows.writer import incoming_records
from eventide_adapters.format.metadata_table.records.reader import MetadataTableReader
from eventide_adapters.storage.faulty import SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import WriteOperation
from golden.histories import PLAIN
from support.cases.pruned_reads import BY_LISTING
from support.doubles.dying_storage import DyingStorage
from support.files.metadata_updates import check_files
from support.judge import HudiJudge, hudi_rs
from support.pasts import golden

BY_METADATA = {"hoodie.metadata.enable": "true"}
AT_ONCE = {"hoodie.metadata.compact.max.delta.commits": "1"}
BROAD = pytest.mark.broad
Rows = Counter[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Subject:
    """A golden table with a metadata table, and the Hudi that continues it."""

    path: Path
    options: Mapping[str, str]
    judge: HudiJudge

    @property
    def own(self) -> dict[str, str]:
        return {**AT_ONCE, "hoodie.bucket.index.num.buckets": "2"}

    def rows(self) -> Rows:
        """What eventide shows, and Hudi by the metadata table and by listings."""
        found = rows(Table.open(str(self.path)).snapshot().to_arrow())
        for options in (BY_METADATA, BY_LISTING):
            assert rows(self.judge.read(self.path, options=options)) == found
        return found

    def upsert(self, changed: pa.Table, dies_before: str | None = None) -> None:
        if dies_before is None:
            Table.open(str(self.path), self.own).upsert(changed)
            return
        application = assemble(str(self.path), self.own, storage=DyingStorage(self.path, dies_before))
        incoming = incoming_records(application, WriteOperation.UPSERT, changed)
        with pytest.raises(SimulatedCrash):
            application.append.write(WriteOperation.UPSERT, incoming, NoProgress())

    def changed(self, word: str, ms: int) -> pa.Table:
        shown = Table.open(str(self.path)).snapshot().to_arrow(PLAIN.names).sort_by("id").to_pylist()[::7]
        changed: list[dict[str, Any]] = [{**row, "val": word, "event_ts": 2 * 10**12 + ms} for row in shown]
        return pa.Table.from_pylist(changed, schema=PLAIN)

    def compactions(self, state: str) -> list[str]:
        """The requested times of the metadata table's compactions that have, or are, of that state."""
        files = (self.path / ".hoodie/metadata/.hoodie").rglob(f"*.{state}")
        return sorted(re.split(r"[_.]", file.name)[0] for file in files)

    def log_count(self) -> int:
        (found,) = MetadataTableReader.load(LocalStorage(self.path)).slices("files")
        return len(found.log_files)


def rows(found: pa.Table) -> Rows:
    return Counter(tuple(repr(row[name]) for name in PLAIN.names) for row in found.to_pylist())


@pytest.mark.broad
@pytest.mark.parametrize(
    ("name", "fixture"),
    [
        ("v6_mdt", "judge_015"),
        pytest.param("v9_mdt", "judge_111", marks=pytest.mark.proof),
        ("v9_mdt", "judge_120"),
    ],
)
def test_hudi_continues_after_the_timeline_of_the_metadata_table_is_archived(
    name: str, fixture: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(fixture)
    path = golden.unpack(name, tmp_path)
    subject = Subject(path, {**golden.expected(name).options, **BY_METADATA}, judge)
    for number in range(6):
        subject.upsert(subject.changed("archived", number))
    known = MetadataTableReader.load(LocalStorage(path)).facts.timeline.instants
    early = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    options = {**subject.own, **early, "hoodie.compact.inline.max.delta.commits": "1"}
    assert Table.open(str(path), options).archive()
    assert len(MetadataTableReader.load(LocalStorage(path)).facts.timeline.instants) < len(known) / 2
    shown = subject.rows()
    check_files(subject.path)
    judge.write(path, subject.changed("Hudi's", 7), options={**subject.options, **AT_ONCE, **early})
    assert subject.rows() != shown
    check_files(subject.path)
    subject.upsert(subject.changed("once more", 8))
    subject.rows()
    check_files(subject.path)


@pytest.mark.parametrize(
    ("name", "fixture"),
    [
        pytest.param("v6_mdt", "judge_015", marks=BROAD),
        pytest.param("v9_mdt", "judge_111", marks=BROAD),
        pytest.param("v6_mdt", "judge_111", marks=pytest.mark.proof),
        pytest.param("v9_mdt", "judge_120", marks=pytest.mark.proof),
    ],
)
def test_hudi_continues_with_a_compacted_metadata_table(
    name: str, fixture: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(fixture)
    path = golden.unpack(name, tmp_path)
    subject = Subject(path, {**golden.expected(name).options, **BY_METADATA}, judge)

    subject.upsert(subject.changed("compacted", 1))
    assert subject.log_count() == 0
    (first,) = subject.compactions("commit")
    shown = subject.rows()
    if name.startswith("v9"):
        assert rows(hudi_rs.read(path)) == shown

    # Hudi ends the compaction that eventide began and did not end.
    subject.upsert(subject.changed("begun", 2), dies_before=r"metadata/\.hoodie/.*\.commit$")
    begun = subject.compactions("inflight")[-1]
    assert begun > first
    assert subject.compactions("commit") == [first]
    shown = subject.rows()
    judge.write(path, subject.changed("Hudi's", 3), options=subject.options)
    assert subject.compactions("commit") == [first, begun]
    assert subject.rows() != shown
    check_files(subject.path)

    # And continues after it: a compaction of its own takes in what both have written.
    subject.upsert(subject.changed("once more", 4))
    assert subject.log_count() == 0
    assert len(list(path.glob(".hoodie/metadata/files/files-*.hfile"))) == 2  # old slices are gone
    often = {**subject.options, **AT_ONCE}
    judge.write(path, subject.changed("Hudi's own", 5), options=often)
    judge.write(path, subject.changed("Hudi's own, too", 6), options=often)
    assert len(subject.compactions("commit")) >= 4
    subject.rows()
    check_files(subject.path)
    table = f"compacted_{name}_{fixture}"
    judge.sql(f"create table {table} using hudi location '{path}'")
    assert judge.call("validate_metadata_table_files", table=table).num_rows == 0
    judge.sql(f"drop table {table}")
