"""The records of a write in one file group of the record index."""

from collections.abc import Sequence

import pyarrow as pa

from eventide_adapters.format.metadata_table.group_records import GroupRecords, LogForm
from eventide_adapters.format.metadata_table.records.hfile_writer import HFileStyle
from eventide_adapters.format.metadata_table.records.records import decode_value, record_index_value
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.metadata_table import RECORD_INDEX

SCHEMA = AvroSchema.of("""{"type": "record", "name": "HoodieMetadataRecord", "fields": [
    {"name": "key", "type": ["null", "string"], "default": null}, {"name": "type", "type": "int"},
    {"name": "recordIndexMetadata", "type": ["null", {"type": "record", "name": "HoodieRecordIndexInfo", "fields": [
        {"name": "partitionName", "type": "string"}, {"name": "fileId", "type": "string"}]}], "default": null}]}""")


class Told(LogForm):
    """Names each key and its file ID instead of encoding them."""

    def encode(self, entries: Sequence[tuple[bytes, bytes]], removed: Sequence[str]) -> bytes:
        values = {key.decode(): decode_value(value, SCHEMA, "") for key, value in entries}
        found = [f"{key}={value['recordIndexMetadata']['fileId']}" for key, value in values.items()]
        return " ".join([*found, *(f"-{key}" for key in removed)]).encode()


def test_a_key_that_two_slices_of_a_write_show_is_in_the_later_one() -> None:
    places = [record_index_value("part=a", file_id, 0) for file_id in ("first", "second")]
    keys = (pa.array(["b", "a"]), pa.array(["c", "b"]))
    records = GroupRecords(tuple(zip(keys, places, strict=True)), ("gone",))
    assert records.encoded(Told(RECORD_INDEX, "1", SCHEMA, HFileStyle.NATIVE)) == (
        4,
        b"a=first b=second c=second -gone",
    )
