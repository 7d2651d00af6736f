"""hudi-rs, the second judge: an implementation of Hudi in Rust, independent of the Java one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pyarrow as pa
from hudi import HudiQueryType, HudiReadOptions, HudiTable

READ_OPTIMIZED_MODE = "hoodie.read.use.read_optimized.mode"


def read(
    path: Path | str,
    query: Literal["snapshot", "read_optimized", "incremental"] = "snapshot",
    *,
    as_of: str | None = None,
    begin: str | None = None,
    end: str | None = None,
    options: Mapping[str, str] | None = None,
) -> pa.Table:
    """All columns that hudi-rs returns, with the rows in any order. Raises the errors of hudi-rs."""
    incremental = query == "incremental"
    chosen = HudiReadOptions().with_query_type(HudiQueryType.Incremental if incremental else HudiQueryType.Snapshot)
    if query == "read_optimized":
        chosen = chosen.with_hudi_option(READ_OPTIMIZED_MODE, "true")
    if as_of is not None:
        chosen = chosen.with_as_of_timestamp(as_of)
    if begin is not None:
        chosen = chosen.with_start_timestamp(begin)
    if end is not None:
        chosen = chosen.with_end_timestamp(end)
    table = HudiTable(str(path), dict(options or {}))
    batches = [pa.record_batch(batch) for batch in table.read(chosen)]
    return pa.Table.from_batches(batches) if batches else table.get_schema_with_meta_fields().empty_table()
