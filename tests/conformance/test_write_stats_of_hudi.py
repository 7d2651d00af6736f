"""What Hudi's write stats state of the event times of its log files, and which of them eventide takes for the truth."""

from dataclasses import replace
from pathlib import Path

import pytest

from eventide.bootstrap import assemble
from eventide_core.config import EVENT_TIME_FIELD
from support.writers.java_writer import JavaWriter

# Hudi fills a log file with a few records, and then begins the next one.
SMALL_LOG_FILES = {"hoodie.logfile.max.size": "2000", "hoodie.logfile.data.block.max.size": "1000"}


@pytest.mark.broad
def test_no_range_is_taken_from_a_stat_of_a_write_that_filled_several_log_files(tmp_path: Path) -> None:
    path, options = tmp_path / "table", {**SMALL_LOG_FILES, "hoodie.metadata.enable": "false"}
    with JavaWriter("1.1.1", 9, [], tmp_path / "writer", options=options, dying={path: "requested"}, whole=3) as writer:
        writer.kill()
    application = assemble(str(path), {EVENT_TIME_FIELD: "event_ts"})
    state = application.state()
    shape, logs = state.shape("event_ts"), [log for found in state.view.latest_slices() for log in found.log_files]
    told = application.freshness.facts.read(state, shape, logs, are_stats_proof=True)
    held = assemble(str(path), {}).freshness.facts.read(replace(state, commits={}), shape, logs, are_stats_proof=False)

    stats = [stat for commit in state.commits.values() for stat in commit.stats]
    ranges = {stat.path: stat.event_time_range for stat in stats}
    wrong = [log for log in logs if ranges[log.path] not in (None, held[log.path].event_times)]
    assert wrong, "Hudi now counts each record for the log file that has it"
    assert {file: facts.event_times for file, facts in told.items()} == {
        file: facts.event_times for file, facts in held.items()
    }
