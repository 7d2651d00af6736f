"""Record keys and partition paths that eventide makes are those that real Hudi wrote into its own tables."""

from pathlib import Path

import pytest

from eventide import Table
from eventide_adapters.format.write.record_keys import partition_paths, record_keys
from eventide_core.table.settings.key_format import KeyFormat
from support.pasts import golden


@pytest.mark.parametrize(
    "name",
    ["v6_avro_owl_simple", "v6_encoded", "v9_dates", "v9_event_simple", "v9_unpartitioned", "v6_111_avro_bucket"],
)
def test_keys_and_paths_are_those_that_hudi_wrote(name: str, tmp_path: Path) -> None:
    table = Table.open(str(golden.unpack(name, tmp_path)))
    rows = table.snapshot().to_arrow()
    keys = KeyFormat.of(table.state().config, table.uri)
    assert record_keys(rows, keys)[0].to_pylist() == rows.column("_hoodie_record_key").to_pylist()
    assert partition_paths(rows, keys).to_pylist() == rows.column("_hoodie_partition_path").to_pylist()
    assert rows.num_rows > 10
