"""Tables of Hudi whose metadata table has indexes over their rows, without running Hudi."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide import Table
from eventide_adapters.format.slice.log_file.delete_block import encode_delete_block
from support.files.metadata_updates import set_property
from support.pasts import golden

COLUMNS = ("_hoodie_record_key", "id", "event_ts", "amount")
FIRST = "00000000000000000"  # the instant at which Hudi made the metadata table
INDEXES = {
    "bloom_filters": "bloom-filters",
    "column_stats": "col-stats",
    "record_index": "record-index",
}
SECONDARY = "secondary_index_by_val"
OPTIONS = {"hoodie.index.type": "SIMPLE", "hoodie.index.bloom.num_entries": "100"}


def indexed(name: str, directory: Path, record_index_groups: int = 1, *, has_secondary_index: bool = False) -> Path:
    """A table of Hudi whose metadata table has these indexes too, as empty as Hudi begins them.

    The record index gets the keys of the table when they are written again. Until then, only an index that isn't global
    finds them, such as the one in OPTIONS.
    """
    made = golden.unpack(name, directory)
    for partition, prefix in INDEXES.items():
        (made / ".hoodie/metadata" / partition).mkdir()
        empty = encode_delete_block(FIRST, partition, [], pa.nulls(0))
        for number in range(record_index_groups if partition == "record_index" else 1):
            name = f".{prefix}-{number:04}-0_{FIRST}.log.1_0-0-0"
            (made / ".hoodie/metadata" / partition / name).write_bytes(empty)
    definitions = {"column_stats": {"sourceFields": COLUMNS, "version": "V2"}}
    named = ["files", *INDEXES]
    if has_secondary_index:
        (made / ".hoodie/metadata" / SECONDARY).mkdir()
        empty = encode_delete_block(FIRST, SECONDARY, [], pa.nulls(0))
        name = f".{SECONDARY.replace('_', '-')}-0000-0_{FIRST}.log.1_0-0-0"
        (made / ".hoodie/metadata" / SECONDARY / name).write_bytes(empty)
        definitions[SECONDARY] = {"indexType": "secondary_index", "sourceFields": ("val",), "version": "V2"}
        named.append(SECONDARY)
    (made / ".hoodie/.index_defs").mkdir()
    (made / ".hoodie/.index_defs/index.json").write_text(json.dumps({"indexDefinitions": definitions}))
    set_property(made, "hoodie.table.metadata.partitions", ",".join(named))
    return made


def own_rows(table: Table) -> pa.Table:
    rows = table.snapshot().to_arrow()
    return rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")]).sort_by("id")


def with_ids(rows: pa.Table, prefix: str) -> pa.Table:
    ids: Any = [f"{prefix}{number}" for number in range(len(rows))]
    return rows.set_column(rows.schema.get_field_index("id"), "id", pa.array(ids))
