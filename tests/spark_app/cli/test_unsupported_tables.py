"""Tables that eventide does not support: every verb refuses them alike, before anything is written.

The message names the property, its value, and what would have to change. No cure removes or restores data.
"""

from pathlib import Path

import pytest

from support.cases.unsupported import refused_by_every_verb
from support.run.command_line import content_of, run
from support.tables.small import make, rows

MERGE_PROPERTY = "hoodie.record.merge.property.hoodie.payload"
REFUSED: dict[str, dict[str, str]] = {
    "version 5": {"hoodie.table.version": "5"},
    "version 7": {"hoodie.table.version": "7"},
    "version 10": {"hoodie.table.version": "10"},
    "an unknown type": {"hoodie.table.type": "MERGE_ON_WRITE"},
    "ORC": {"hoodie.table.base.file.format": "ORC"},
    "several base file formats": {"hoodie.table.multiple.base.file.formats.enable": "true"},
    "partition columns left out": {"hoodie.datasource.write.drop.partition.columns": "true"},
    "bootstrapped": {"hoodie.bootstrap.base.path": "/old"},
    "no keys": {"hoodie.populate.meta.fields": "false", "hoodie.table.recordkey.fields": ""},
    "keys of a class of its owner's": {
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.keygenerator.type": "",
        "hoodie.table.keygenerator.class": "com.example.Keys",
    },
    "a merger of its owner's": {"hoodie.record.merge.mode": "CUSTOM"},
    "a payload of its owner's": {
        "hoodie.record.merge.mode": "",
        "hoodie.compaction.payload.class": "com.example.Payload",
    },
    "an unknown mode of partial updates": {"hoodie.table.partial.update.mode": "KEEP_VALUES"},
    "partial updates without their marker": {"hoodie.table.partial.update.mode": "FILL_UNAVAILABLE"},
    "half a delete marker": {f"{MERGE_PROPERTY}.delete.field": "op"},
    "an unknown merge property": {f"{MERGE_PROPERTY}.example": "1"},
}


def change(path: Path, changes: dict[str, str]) -> None:
    """Sets properties of the table; an empty value removes one."""
    file = path / ".hoodie" / "hoodie.properties"
    kept = [line for line in file.read_text().splitlines() if line.split("=")[0] not in changes]
    file.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in changes.items() if value)]) + "\n")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unsupported") / "t"
    made = make(path, 9)
    made.upsert(rows(("k0", 0, "one")))
    made.upsert(rows(("k0", 1, "two")))
    return path


@pytest.mark.parametrize("what", REFUSED)
def test_every_verb_refuses_the_table_and_names_the_property(what: str, table: Path) -> None:
    properties = table / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    changes = REFUSED[what]
    change(table, changes)
    before = content_of(table)
    try:
        refused_by_every_verb(table, {key: value for key, value in changes.items() if value})
        assert content_of(table) == before
    finally:
        properties.write_text(text)
    assert run("verify", table, "--deep").exit_code == 0
