"""Reading the timeline while others change it.

On local disks and HDFS, a completed file that stock Hudi is still putting exists before it is whole. An upgrade moves the
timeline to another directory.
"""

import shutil
from pathlib import Path

import pytest

from eventide.bootstrap import assemble
from eventide_core.errors import CorruptTimelineError, UnsafePathError
from support.doubles.clocks import ManualClock
from support.tables.append import make, rows


@pytest.fixture
def last_commit(tmp_path: Path) -> Path:
    table = make(tmp_path / "t", 6)
    table.upsert(rows(("k0", "a", 10, "first")))
    (commit,) = (tmp_path / "t" / ".hoodie").glob("*.deltacommit")
    return commit


@pytest.mark.parametrize("kept", [0, 100])
def test_a_commit_that_is_being_put_is_read_when_it_is_whole(kept: int, last_commit: Path) -> None:
    whole = last_commit.read_bytes()
    last_commit.write_bytes(whole[:kept])
    clock = ManualClock()
    clock.events.append((clock.time_ms + 1, lambda: last_commit.write_bytes(whole[: kept + 50])))
    clock.events.append((clock.time_ms + 40, lambda: last_commit.write_bytes(whole)))
    files = assemble(str(last_commit.parents[1]), {}, clock=clock).files
    (written,) = files.timeline(files.config()).writes
    assert files.commit(files.config(), written).stats
    clock.events.append((clock.time_ms + 1, lambda: last_commit.write_bytes(whole)))
    last_commit.write_bytes(b"")
    again = assemble(str(last_commit.parents[1]), {}, clock=clock).files
    assert again.commits(again.config(), [written])[written.requested_time].stats


@pytest.mark.parametrize("kept", [0, 100])
def test_a_commit_that_stays_damaged_is_named(kept: int, last_commit: Path) -> None:
    last_commit.write_bytes(last_commit.read_bytes()[:kept])
    files = assemble(str(last_commit.parents[1]), {}, clock=ManualClock()).files
    (written,) = files.timeline(files.config()).writes
    with pytest.raises(CorruptTimelineError, match=last_commit.name):
        files.commit(files.config(), written)


@pytest.mark.parametrize(("before", "after"), [(6, 9), (9, 6)])
def test_the_timeline_is_listed_where_an_upgrade_or_downgrade_has_moved_it(
    before: int, after: int, tmp_path: Path
) -> None:
    for version in (before, after):
        make(tmp_path / str(version), version).upsert(rows(("k0", "a", 10, "first")))
    here = tmp_path / str(before)
    files = assemble(str(here), {}, clock=ManualClock()).files
    config, old = files.config_and_timeline()
    assert (config, old) == files.config_and_timeline()
    shutil.rmtree(here)
    (tmp_path / str(after)).rename(here)
    config, new = files.config_and_timeline()
    assert config.version == after
    fresh = assemble(str(here), {}, clock=ManualClock()).files
    assert (config, new) == fresh.config_and_timeline()
    assert new.writes
    assert new != old


@pytest.mark.parametrize("name", ["C:", "s3:old", "..\\b", "a\\\\b"])
def test_a_directory_of_others_that_no_path_can_name_is_named_with_a_cure(name: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", "a", 10, "first")))
    (tmp_path / "t" / name).mkdir()
    for operation in (table.snapshot, table.verify):
        with pytest.raises(UnsafePathError) as caught:
            operation()
        assert str(caught.value).startswith(f"file://{tmp_path}/t has a directory {name!r}, and that path ")
        assert "move it out of the table" in str(caught.value)
