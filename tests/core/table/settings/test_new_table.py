"""The settings of new tables: their keys are Hudi's."""

import tarfile

import pytest

from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.new_table import NewTable
from eventide_core.table.settings.properties import parse_properties
from support.pasts import golden

SCHEMA = AvroSchema.of(
    '{"type": "record", "name": "t", "fields": [{"name": "id", "type": "string"}, {"name": "ts", "type": "long"}]}'
)


OF_CREATE_TABLE = {"hoodie.database.name", "hoodie.table.create.schema"}
"""Keys that Hudi writes for CREATE TABLE, by which no golden table was made."""


@pytest.mark.parametrize("version", [6, 8, 9])
def test_hudi_writes_each_key_of_a_new_table(version: int) -> None:
    table = NewTable("t", SCHEMA, version, MergeRule.EVENT_TIME_ORDERING, ("id",), ("id",), "ts")
    of_hudi = {key for name in golden.names() for key in _keys_of_hudi(name)} | OF_CREATE_TABLE

    of_eventide = set(parse_properties(table.properties()))

    assert of_eventide <= of_hudi


def _keys_of_hudi(name: str) -> set[str]:
    with tarfile.open(golden.DIRECTORY / f"{name}.tar.gz") as archive:
        member = next(m for m in archive.getmembers() if m.name.endswith(".hoodie/hoodie.properties"))
        content = archive.extractfile(member)
        assert content is not None
        return set(parse_properties(content.read().decode("latin-1")))
