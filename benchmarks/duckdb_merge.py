"""DuckDB doing what a compaction does to rows, and nothing else: base files and changes merged by key, and written.

It cannot read a log of Avro blocks, so the changes lie ready as Parquet. The base files that count are passed
to it. It knows no file groups, builds no filter, marks nothing and commits nothing.
"""

import importlib
from typing import Any

_WINNERS = """
create or replace temp table winners as
select * from read_parquet('{changes}/*/*.parquet')
qualify row_number() over (partition by id order by deleted desc, event_ts desc, commit desc) = 1
"""
_MERGED = """
copy (
    select * from read_parquet('{base}', hive_partitioning = false) b
    where not exists (select 1 from winners w where w.id = b.id and (w.deleted or w.event_ts >= b.event_ts))
    union all by name
    select * exclude (commit, deleted), commit::varchar as _hoodie_commit_time, 'none' as _hoodie_commit_seqno,
        id as _hoodie_record_key, part as _hoodie_partition_path, 'none' as _hoodie_file_name
    from winners w
    where not deleted and not exists (
        select 1 from read_parquet('{base}', hive_partitioning = false) b where b.id = w.id and b.event_ts > w.event_ts
    )
) to '{to}' (format parquet, codec '{codec}'{level}, per_thread_output, overwrite)
"""


def merge(path: str, changes: str, codec: str) -> int:
    """How many rows it wrote, below `path`, on two threads. Only the level of zstd can be told: 1, as everybody's."""
    duckdb: Any = importlib.import_module("duckdb")  # only the judges' environment has it
    with duckdb.connect(config={"threads": 2, "preserve_insertion_order": False}) as connection:
        connection.execute(_WINNERS.format(changes=changes))
        level = ", compression_level 1" if codec == "zstd" else ""
        told = _MERGED.format(base=f"{path}/*/*.parquet", to=f"{path}/duckdb", codec=codec, level=level)
        written = connection.execute(told).fetchone()
        assert written is not None
        return int(written[0])
