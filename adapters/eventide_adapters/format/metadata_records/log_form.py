"""The content of a log file of the metadata table: an HFILE block, and a DELETE block if keys are removed."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from eventide_adapters.format.log_file.delete_block import encode_delete_block
from eventide_adapters.format.metadata_records.hfile_writer import HFileStyle, encode_hfile
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block
from eventide_core.table.records.schema import AvroSchema


@dataclass(frozen=True, slots=True)
class LogForm:
    """What all blocks of a write to a file group have in common.

    `partition` is that of the metadata table, `instant` that of the write. `schema` is the Avro schema of the values, which
    each block states. `style` decides whether HBase's reader, which Hudi 0.x uses, can read the HFILE block.
    """

    partition: str
    instant: str
    schema: AvroSchema
    style: HFileStyle

    def encode(self, entries: Sequence[tuple[bytes, bytes]], removed: Sequence[str]) -> bytes:
        """`entries` are keys and values in the order of the keys."""
        header = {HeaderKey.INSTANT_TIME: self.instant, HeaderKey.SCHEMA: self.schema.text}
        blocks = b""
        if entries:
            blocks += encode_block(BlockType.HFILE_DATA, header, encode_hfile(entries, self.schema, self.style))
        if removed:
            blocks += encode_delete_block(self.instant, self.partition, removed, pa.nulls(len(removed)))
        return blocks
