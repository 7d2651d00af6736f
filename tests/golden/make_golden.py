"""Makes the golden tables again: `python tests/golden/make_golden.py [NAME...]`, in the tests' environment.

Each becomes `<name>.tar.gz`, the table as Hudi left it (hidden `.crc` files and modification times included),
and `<name>.expected.json`, what it is made of and what each judge reads from it (see `support/pasts/golden.py`).
Rows and options are the same every time; instants, file ids and sizes are not.
"""

import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.histories import Step
from golden.readings import Readings, as_json
from golden.recipes import Recipe, recipes
from support.judge import HudiJudge, JudgeError, hudi_judge, hudi_rs
from support.judge.deeds import Statements
from support.judge.jars import BUNDLES
from support.pasts.golden import DIRECTORY, unpack

Document: TypeAlias = dict[str, object]

# Fails after the logs were written and before the commit is completed: no table has -1 rows.
FAILING_VALIDATOR = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME>#-1",
}
CLUSTERING = "hoodie.clustering.plan.strategy.small.file.limit=100000000"
# Hudi 0.15 loses the order of late rows in a compaction without these options.
ORDERING = ("hoodie.payload.ordering.field", "hoodie.payload.event.time.field")
SQL_TYPES = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double"}
# The table versions that a Hudi reads; later ones read all.
READS = {"0.15.0": ("v6",), "1.0.2": ("v6", "v8")}


def build(judge: HudiJudge, recipe: Recipe, path: Path) -> list[Document]:
    """Writes the table at `path`, and returns the steps as JSON values."""
    steps: list[Document] = []
    for nth, step in enumerate(recipe.history):
        match step.operation:
            case "compact":
                judge.schedule_compaction(path)
                judge.run_compaction(path, {key: recipe.options[key] for key in ORDERING})
            case "plan_clustering" | "cluster":
                op = "schedule" if step.operation == "plan_clustering" else "scheduleAndExecute"
                judge.call("run_clustering", path=path, op=op, options=CLUSTERING)
            case "savepoint":
                judge.call("create_savepoint", path=path, commit_time=_latest(judge, path))
            case "merge_into":
                _merge_into(judge, recipe, path, step)
            case "restore" | "roll_back":
                _go_back(judge, recipe.name, path, step.operation)
            case _:
                _write(judge, recipe, path, step, first=nth == 0)
        rows = [[as_json(row.get(name)) for name in recipe.schema.names] for row in step.rows]
        steps.append({"operation": step.operation, "failed": step.must_fail, "rows": rows})
    return steps


def _merge_into(judge: HudiJudge, recipe: Recipe, path: Path, step: Step) -> None:
    """Updates the columns that the rows have, by the keys that match."""
    columns = [field for field in recipe.schema if field.name in step.rows[0]]
    values = ", ".join(str(tuple(row[column.name] for column in columns)) for row in step.rows)
    typed = ", ".join(f"cast({column.name} as {SQL_TYPES[column.type]}) as {column.name}" for column in columns)
    updated = ", ".join(f"t.{column.name} = s.{column.name}" for column in columns if column.name not in ("id", "part"))
    statements = (
        f"create table {recipe.name} using hudi location '{path}'",
        (
            f"merge into {recipe.name} t using (select {typed} from values {values} as v"
            f"({', '.join(column.name for column in columns)})) s on t.id = s.id and t.part = s.part "
            f"when matched then update set {updated}"
        ),
        f"drop table {recipe.name}",
    )
    # Of a partial update, Hudi finds no event time to track.
    tracks = {"hoodie.write.track.event.time.watermark": "false"}
    settings = {key: value for key, value in recipe.options.items() if not key.startswith("hoodie.datasource")} | tracks
    (failure,) = judge.together([[Statements(statements, settings)]])
    assert failure is None, failure


def _latest(judge: HudiJudge, path: Path) -> str:
    return judge.timeline(path)[-1].requested_time


def _go_back(judge: HudiJudge, name: str, path: Path, operation: str) -> None:
    # Unasked, both of Hudi 0.15's would look for a metadata table.
    judge.sql("set hoodie.metadata.enable=false")
    if operation == "restore":
        savepoint = next(i for i in judge.timeline(path) if i.action == "savepoint")
        judge.call("rollback_to_savepoint", path=path, instant_time=savepoint.requested_time)
    else:
        judge.sql(f"create table if not exists {name} using hudi location '{path}'")
        judge.call("rollback_to_instant", table=name, instant_time=_latest(judge, path))
    judge.sql("reset hoodie.metadata.enable")


def _write(judge: HudiJudge, recipe: Recipe, path: Path, step: Step, *, first: bool) -> None:
    try:
        judge.write(
            path,
            list(step.rows),
            step.schema or recipe.schema,
            options={**recipe.options, **step.options, **(FAILING_VALIDATOR if step.must_fail else {})},
            operation=step.operation,
            mode="overwrite" if first else "append",
        )
    except JudgeError:
        if not step.must_fail:
            raise
    else:
        assert not step.must_fail, f"{recipe.name}: a write that was to fail went through"


def pack(path: Path, archive: Path) -> None:
    """Packs the table without the owner's name and without its directories' inode order."""
    with tarfile.open(archive, "w:gz", compresslevel=9) as tar:
        for member in sorted(path.rglob("*")):
            tar.add(member, member.relative_to(path), recursive=False, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def write_all(version: str, chosen: list[Recipe]) -> Iterator[tuple[Recipe, Document, Readings]]:
    """Builds and packs the tables that `version` writes."""
    own = [recipe for recipe in chosen if recipe.bundle == version]
    if not own:
        return
    with hudi_judge(version) as judge:
        for recipe in own:
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / recipe.name
                steps = build(judge, recipe, path)
                pack(path, DIRECTORY / f"{recipe.name}.tar.gz")
                readings = Readings(
                    recipe.schema,
                    judge.timeline(path),
                    begins_at_completion=not recipe.name.startswith("v6"),
                )
            sys.stderr.write(f"{version} wrote {recipe.name}\n")
            yield recipe, {"bundle": version, "options": recipe.options, "steps": steps}, readings


def read_all(version: str, readings: dict[str, Readings]) -> None:
    """Asks `version` about every table that it knows the format of."""
    with hudi_judge(version) as judge, tempfile.TemporaryDirectory() as directory:
        for name, table in readings.items():
            if name.startswith(READS.get(version, "v")):
                table.ask(version, partial(judge.read, unpack(name, Path(directory))))
        sys.stderr.write(f"{version} has read\n")


def main(names: list[str]) -> None:
    """One Hudi after the other, so that no two JVMs run at once: first the writers, then the readers."""
    chosen = [recipe for recipe in recipes() if not names or recipe.name in names]
    documents: dict[str, Document] = {}
    readings: dict[str, Readings] = {}
    for version in BUNDLES:
        for recipe, document, answers in write_all(version, chosen):
            documents[recipe.name], readings[recipe.name] = document, answers
    for version in BUNDLES:
        read_all(version, readings)
    with tempfile.TemporaryDirectory() as directory:
        for name, table in readings.items():
            table.ask("hudi-rs", partial(hudi_rs.read, unpack(name, Path(directory))))
    for name, document in documents.items():
        text = json.dumps({"name": name, **document, **readings[name].document()}, separators=(",", ":"))
        # One row a line, so that a new recipe shows in a diff.
        (DIRECTORY / f"{name}.expected.json").write_text(text.replace("],[", "],\n[") + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
