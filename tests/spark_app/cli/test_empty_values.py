"""What a shell makes of a variable that is not set: an empty value, which no verb takes for an omitted option."""

from pathlib import Path

import pytest

from support.run.command_line import content_of, run
from support.tables.append import make, rows

T = "2026-11-21T00:00Z"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("report", "TABLE", "--to", ""), "'--to': '' isn't a path"),
        (("read", "TABLE", "--to", " "), "'--to': ' ' isn't a path"),
        (("status", "TABLE", "--to", ""), "'--to': '' isn't a path"),
        (("status", "--fleet", ""), "'--fleet': '' isn't a path"),
        (("show", "TABLE", "--config", ""), "'--config': '' isn't a path"),
        (("repair", "TABLE", "--lost-keys", ""), "'--lost-keys': '' isn't a path"),
        (("windows", "TABLE", "--every", "1h", "--consumer", "c", "--next", "--to", ""), "'--to': '' isn't a path"),
        (("rollback", "TABLE", ""), "'INSTANT': the instant must not be ''"),
        (("restore", "TABLE", " "), "'INSTANT': the instant must not be ' '"),
        (("savepoint", "TABLE", ""), "'INSTANT': the instant must not be ''"),
        (("compact", "TABLE", "--execute", ""), "'--execute': the instant must not be ''"),
        (("tag", "TABLE", "name", "--instant", ""), "'--instant': the instant must not be ''"),
        (("read", "TABLE", "--columns", " , "), "--columns ' , ' names no column"),
        (("plan", "TABLE", "--before", ""), "hoodie.compaction.event.time.threshold is given without a value"),
        (
            ("plan", "TABLE", "--before", T, "--align", "1d", "--time-zone", ""),
            "hoodie.compaction.event.time.align.timezone is given without a value",
        ),
        (
            ("serve", "TABLE", "--rounds", "1", "--data-latency", "1h", "--align", "1d", "--time-zone", ""),
            "hoodie.compaction.event.time.align.timezone is given without a value",
        ),
        (("freshness", "TABLE", "--event-time", ""), "hoodie.payload.event.time.field is given without a value"),
        (("plan", "TABLE", "--before", T, "--partition", ""), "'--partition': the partition must not be ''"),
        (("plan", "TABLE", "--before", T, "--master", ""), "'--master': the name must not be ''"),
        (("sync", "TABLE", "--database", ""), "'--database': the name must not be ''"),
        (("sync", "TABLE", "--name", " "), "'--name': the name must not be ' '"),
        (("status", "--catalog", "hive", "--database", ""), "'--database': the name must not be ''"),
        (
            ("ingest", "NEW", "rows.csv", "--create", "--record-key", ""),
            "'--record-key': the name of a field must not be ''",
        ),
        *(
            (
                ("ingest", "NEW", "rows.csv", "--create", "--record-key", "k", word, ""),
                f"'{word}': the name of a field must not be ''",
            )
            for word in ("--partition", "--ordering", "--event-time")
        ),
    ],
)
def test_an_empty_value_is_refused_in_one_line(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("1", "a", 1, "x")))
    before = content_of(tmp_path)
    shown = run(*(table.uri if word == "TABLE" else word for word in words))
    assert shown.exit_code == 2, shown
    assert message in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert content_of(tmp_path) == before


def test_a_misspelled_table_of_a_config_file_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "lake.toml"
    config.write_text('[option]\n"hoodie.compaction.event.time.threshold" = "2026-03-03T00:00Z"\n')
    answer = run("show", tmp_path / "t", "--config", config)
    assert answer.exit_code == 2
    assert f"config file {config}: the table [option] is none of eventide's; did you mean [options]?" in answer.stderr
