"""Tables of real Hudi whose records are ordered, deleted or written in the rarer ways: all read them alike.

Each table is written by Hudi, some logs are then rewritten to what older writers and broken ones leave, and every judge that
knows the table says what is in it; eventide must say the same, and after its compaction so must all.
"""

import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import CorruptLogBlockError
from eventide_core.table.records.record_order import MergeRule, Version, latest
from eventide_core.table.timeline.contents.plans import FallbackReason
from support.files.logs import DELETE, INSTANT_TIME, block, parse_blocks, rollback_block
from support.judge import HudiJudge, hudi_rs
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BUCKET_INDEX,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    PAYLOADS,
    table_name,
    table_version,
)

T = 1_700_000_000_000
COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "part": pa.string(),
    "event_ts": pa.int64(),
    "seq": pa.string(),
    "op": pa.string(),
    "_hoodie_is_deleted": pa.bool_(),
}
FIELDS = pa.schema(COLUMNS)
OPTIONS = (
    MERGE_ON_READ
    | BUCKET_INDEX
    | NO_METADATA_TABLE
    | AVRO_LOG_BLOCKS
    | table_name("kinds")
    | {"hoodie.bucket.index.num.buckets": "1"}
)
HUDI_1 = OPTIONS | EVENT_TIME_ORDERING
HUDI_0 = OPTIONS | DEFAULT_PAYLOAD
Read = Callable[[Path], pa.Table]


def row(key: str, ms: int, seq: str = "m", op: str = "U", *, is_deleted: bool = False) -> dict[str, Any]:
    return {"id": key, "part": "a", "event_ts": T + ms, "seq": seq, "op": op, "_hoodie_is_deleted": is_deleted}


def write(
    judge: HudiJudge, path: Path, commits: Sequence[Sequence[Mapping[str, Any]]], options: Mapping[str, str]
) -> None:
    """The first commit makes base files, each later one a log."""
    first, *others = commits
    judge.write(path, first, FIELDS, options=options, operation="bulk_insert", mode="overwrite")
    for commit in others:
        judge.write(path, commit, FIELDS, options=options)


def seen(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((r["id"], r["event_ts"] - T, r["seq"], r.get("op")) for r in found.to_pylist())


def logs_of(path: Path) -> list[Path]:
    return sorted(p for p in (path / "part=a").iterdir() if ".log." in p.name and not p.name.endswith(".crc"))


def replace_log(log: Path, data: bytes) -> None:
    log.write_bytes(data)
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)


def hold_alike(
    path: Path, before_ms: int, judges: Sequence[Read], options: Mapping[str, str] | None = None
) -> list[tuple[Any, ...]]:
    """The rows, which eventide and the judges see alike; a compaction at that T in between changes them for none."""
    table = Table.open(str(path), options)
    expected = seen(table.snapshot().to_arrow())
    for read in judges:
        assert seen(read(path)) == expected
    table.compact(table.plan_compaction(T + before_ms, link_mode="copy"))
    assert seen(table.snapshot().to_arrow()) == expected
    for read in judges:
        assert seen(read(path)) == expected
    assert table.freshness().watermark_ms == T + before_ms
    return expected


SEVERAL = HUDI_1 | {
    "hoodie.datasource.write.precombine.field": "event_ts,seq",
    "hoodie.payload.ordering.field": "event_ts,seq",
}


@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.broad), 9])
def test_several_ordering_fields(version: int, tmp_path: Path, judge_111: HudiJudge, judge_120: HudiJudge) -> None:
    path = tmp_path / "several"
    commits = [
        [row(key, 100) for key in "pqrstuv"],
        [row("p", 100, "n"), row("q", 100, "l"), row("r", 101, "a"), row("s", 100, "m", "tie"), row("t", 99, "z")],
        [row("u", 100, "n", is_deleted=True), row("v", 100, "l", is_deleted=True), row("r", 300, "b", is_deleted=True)],
        [row("u", 100, "mm", "below its delete"), row("p", 100, "nn"), row("w", 300), row("r", 300, "a", "below")],
        [row("w", 300, "n"), row("x", 400), row("u", 400), row("r", 300, "aa", "below")],
    ]
    write(judge_111, path, commits, SEVERAL | table_version(version))
    judges: list[Read] = [judge_111.read, judge_120.read]
    rows = hold_alike(path, 150, judges)
    assert [r[:3] for r in rows] == [
        ("p", 100, "nn"),
        ("q", 100, "m"),
        ("s", 100, "m"),
        ("t", 100, "m"),
        ("u", 400, "m"),
        ("v", 100, "m"),
        ("w", 300, "n"),
        ("x", 400, "m"),
    ]


FLINKS = OPTIONS | table_version(8) | {"hoodie.datasource.write.payload.class": f"{PAYLOADS}.EventTimeAvroPayload"}


@pytest.mark.broad
def test_merge_mode_custom_with_the_payload_of_flink(
    tmp_path: Path, judge_102: HudiJudge, judge_111: HudiJudge, judge_120: HudiJudge
) -> None:
    """All small histories of a key: Hudi 1.0 merges them as eventide does, and later versions by a rule that is known.

    Those with deletes lie in a slice that is compacted in full, the others in one that is split.
    """
    path = tmp_path / "flink"
    merged, left_over = ("", "U1", "U3", "D1", "D3", "D5"), ("", "U3", "D3", "U5")
    histories = [
        (base, *logs) for base in ("", "U2", "U4") for logs in itertools.product(merged, merged, left_over) if any(logs)
    ]
    commits: list[list[dict[str, Any]]] = [[] for _ in range(4)]
    for number, history in enumerate(histories):
        part = "a" if any(word.startswith("D") for word in history) else "b"
        for commit, word in zip(commits, history, strict=True):
            if word:
                ms = 100 * int(word[1])
                commit.append({**row(f"k{number}", ms, is_deleted=word[0] == "D"), "part": part})
    write(judge_102, path, commits, FLINKS)
    text = (path / ".hoodie" / "hoodie.properties").read_text()
    assert "hoodie.record.merge.mode=CUSTOM" in text

    def by_rule(rule: MergeRule) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, (base, *logs) in enumerate(histories):
            versions = [Version(100 * int(word[1]), word[0] == "D") for word in logs if word]
            winner = latest(rule, Version(100 * int(base[1]), is_delete=False) if base else None, versions)
            if winner is not None:
                found[f"k{number}"] = winner.ordering
        return found

    def by_key(found: pa.Table) -> dict[str, int]:
        return {key: ms for key, ms, *_ in seen(found)}

    table = Table.open(str(path))
    expected, later = by_rule(MergeRule.EVENT_TIME_ORDERING), by_rule(MergeRule.HUDI_1_1_CUSTOM_PAYLOAD)
    assert expected != later
    assert by_key(judge_102.read(path)) == by_key(table.snapshot().to_arrow()) == expected
    for judge in (judge_111, judge_120):
        assert by_key(judge.read(path)) == later

    plan = table.plan_compaction(T + 250, link_mode="copy")
    fallbacks = {op.partition: op.fallback for op in plan.operations}
    assert fallbacks == {"part=a": FallbackReason.DELETE_REORDERED, "part=b": None}
    assert [len(op.left_overs) for op in plan.operations if op.partition == "part=b"] == [1]
    table.compact(plan)
    assert by_key(judge_102.read(path)) == by_key(table.snapshot().to_arrow()) == expected
    for judge in (judge_111, judge_120):
        assert by_key(judge.read(path)) == expected


MARKER = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}


@pytest.mark.parametrize("version", [6, pytest.param(9, marks=pytest.mark.broad)])
def test_a_delete_marker_of_the_tables_own(
    version: int, tmp_path: Path, judge_111: HudiJudge, judge_120: HudiJudge
) -> None:
    path = tmp_path / "marker"
    commits = [
        [row("a", 100), row("b", 100), row("c", 100), row("d", 100, op="D"), row("e", 100)],
        [row("a", 200, op="D"), row("b", 50, op="D"), row("c", 100, op="D"), row("n", 100, op="D")],
        [row("a", 150), row("d", 50), row("e", 200, op="d"), row("f", 300)],
        [row("f", 310, op="D"), row("g", 400)],
    ]
    # The writer doesn't know the marker, so its logs hold the marked records as such. A reader of Hudi heeds the marker that
    # its options name, and not the table's.
    write(judge_111, path, commits, HUDI_1 | DEFAULT_PAYLOAD | table_version(version))
    properties = path / ".hoodie" / "hoodie.properties"
    text = "".join(f"hoodie.record.merge.property.{key}={value}\n" for key, value in MARKER.items())
    properties.write_text(properties.read_text() + text)
    (path / ".hoodie" / ".hoodie.properties.crc").unlink(missing_ok=True)
    everything = [row[0] for row in seen(Table.open(str(path)).snapshot().to_arrow())]
    assert everything == [row[0] for row in seen(judge_111.read(path))] == list("abcdefgn")
    judges: list[Read] = [partial(judge.read, options=MARKER) for judge in (judge_111, judge_120)]
    rows = hold_alike(path, 250, judges, MARKER)
    assert [r[0] for r in rows] == ["b", "d", "e", "g"]


@pytest.mark.broad
def test_aws_dms_and_mysql_debezium_are_an_order_with_a_delete_marker_on_version_9(
    tmp_path: Path, judge_111: HudiJudge
) -> None:
    for payload, ordering in (("AWSDmsAvroPayload", "event_ts"), ("debezium.MySqlDebeziumAvroPayload", "a,b")):
        path = tmp_path / payload
        options = OPTIONS | {
            "hoodie.datasource.write.payload.class": f"{PAYLOADS}.{payload}",
            "hoodie.datasource.write.precombine.field": "_event_bin_file,_event_pos" if ordering == "a,b" else ordering,
        }
        kinds = {"Op" if name == "op" else name: kind for name, kind in COLUMNS.items()}
        kinds |= {"_change_operation_type": pa.string(), "_event_bin_file": pa.string(), "_event_pos": pa.int32()}
        fields = pa.schema(kinds)

        def change(key: str, ms: int, op: str) -> dict[str, Any]:
            names = {"Op": op.upper(), "_change_operation_type": op, "_event_bin_file": "bin.7", "_event_pos": ms}
            return row(key, ms) | names

        first, *others = (
            [change(key, 100, "u") for key in "abcd"],
            [change("a", 200, "d"), change("b", 50, "d"), change("c", 200, "u"), change("d", 50, "u")],
            [change("a", 150, "u"), change("e", 400, "u")],
        )
        judge_111.write(
            path, first, fields, options=options | table_version(9), operation="bulk_insert", mode="overwrite"
        )
        for commit in others:
            judge_111.write(path, commit, fields, options=options | table_version(9))
        table = Table.open(str(path), {"hoodie.payload.event.time.field": "event_ts"})
        expected = seen(judge_111.read(path))
        assert seen(table.snapshot().to_arrow()) == expected
        table.compact(table.plan_compaction(T + 300))
        assert seen(table.snapshot().to_arrow()) == seen(judge_111.read(path)) == expected
        keys = {"AWSDmsAvroPayload": "acde", "debezium.MySqlDebeziumAvroPayload": "bcde"}[payload]
        assert [r[0] for r in expected] == list(keys)


@pytest.mark.broad
def test_deletes_of_hudi_before_0_14(tmp_path: Path, judge_015: HudiJudge, judge_111: HudiJudge) -> None:
    """The same deletes as DELETE blocks of versions 3, 2 and 1, the last two in the bytes of Hudi's own classes."""
    path = tmp_path / "kryo"
    commits = [
        [row(key, 100) for key in "abcdef"],
        [row("a", 200, is_deleted=True), row("b", 150, is_deleted=True), row("c", T, is_deleted=True)],
        [row("d", 300, is_deleted=True), row("e", 200, is_deleted=True)],
        [row("f", 400), row("a", 210)],
    ]
    write(judge_015, path, commits, HUDI_0)
    as_written = seen(judge_015.read(path))
    ordered, natural, _ = logs_of(path)
    for log, version, deletes in (
        (ordered, 2, {"a": T + 200, "b": T + 150, "c": 2 * T}),
        (natural, 1, {"d": None, "e": None}),
    ):
        ((kind, header, _),) = parse_blocks(log.read_bytes())
        assert kind == DELETE
        data = judge_015.serialized_deletes("part=a", deletes)
        replace_log(log, block(DELETE, header, struct.pack(">ii", version, len(data)) + data))
    assert hold_alike(path, 350, [judge_015.read, judge_111.read]) == as_written


@pytest.mark.parametrize("judge", ["judge_015", "judge_111"])
def test_several_blocks_in_one_file_torn_ones_among_them(
    judge: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """As appends on HDFS: an interrupted write, its rollback, and later writes, all in one log file of version 6."""
    hudi: HudiJudge = request.getfixturevalue(judge)
    path = tmp_path / "appended"
    commits = [
        [row(key, 100) for key in "abcd"],
        [row("a", 200), row("b", 210, is_deleted=True)],
        [row("c", 220)],
        [row("d", 400), row("b", 410)],
    ]
    options = HUDI_0 if judge == "judge_015" else HUDI_1 | DEFAULT_PAYLOAD | table_version(6)
    write(hudi, path, commits, options)
    expected = seen(hudi.read(path))
    first, second, third = logs_of(path)
    one, two, three = (log.read_bytes() for log in (first, second, third))
    ((_, header, _),) = parse_blocks(two)
    died = f"{int(header[INSTANT_TIME]) - 1:017d}"  # a write that never completed
    content = block(3, header | {INSTANT_TIME: died}, parse_blocks(two)[0][2])
    torn = content[: len(content) - 40]
    for log in (second, third):
        log.unlink()
        log.with_name(f".{log.name}.crc").unlink()
    for commit in (path / ".hoodie").glob("*.deltacommit"):
        text = commit.read_text()
        commit.write_text(text.replace(second.name, first.name).replace(third.name, first.name))
        commit.with_name(f".{commit.name}.crc").unlink()
    rollback = rollback_block(header[INSTANT_TIME], died)
    replace_log(first, one + torn + rollback + content + rollback + two + torn + three)
    assert seen(hudi.read(path)) == expected
    assert hold_alike(path, 300, [hudi.read, hudi_rs.read]) == expected


def test_a_torn_block_of_a_completed_write_stops_a_compaction_before_it_writes(
    tmp_path: Path, judge_111: HudiJudge
) -> None:
    path = tmp_path / "torn"
    write(
        judge_111, path, [[row("a", 100), row("b", 100)], [row("a", 200)], [row("b", 210)]], HUDI_1 | table_version(9)
    )
    first, _ = logs_of(path)
    replace_log(first, first.read_bytes()[:-20] + bytes(20))
    before = sorted(p.as_posix() for p in path.rglob("*"))
    table = Table.open(str(path))
    assert seen(judge_111.read(path)) == [("a", 100, "m", "U"), ("b", 210, "m", "U")], "Hudi skips the block silently"
    with pytest.raises(CorruptLogBlockError, match=r"has 0 blocks of .*, but that commit wrote 1"):
        table.snapshot().to_arrow()
    with pytest.raises(CorruptLogBlockError, match=r"has 0 blocks of .*, but that commit wrote 1"):
        table.compact(table.plan_compaction(T + 300))
    assert sorted(p.as_posix() for p in path.rglob("*")) == before
