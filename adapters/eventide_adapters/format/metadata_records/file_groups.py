"""The file groups of many keys of the metadata table at once. Apart from `records`, which starts without Arrow."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.metadata_records.records import file_group_number


def file_group_numbers(keys: Any, file_groups: int) -> Any:
    """`file_group_number` of each text of an Arrow array, as a NumPy array of integers."""
    letters = keys.cast(pa.large_binary())
    _, ends, data = letters.buffers()
    offsets = np.frombuffer(ends, np.int64, len(letters) + 1, letters.offset * 8)
    lengths = np.diff(offsets)
    codes = np.zeros(len(letters), np.uint32)
    longer = np.flatnonzero(lengths)
    place = 0
    while len(longer):
        codes[longer] = codes[longer] * 31 + np.frombuffer(data, np.uint8)[offsets[longer] + place]
        place += 1
        longer = longer[lengths[longer] > place]
    numbers = np.abs(codes.view(np.int32).astype(np.int64)) % file_groups
    # The bytes of other texts are not their UTF-16 units.
    for at in np.flatnonzero(~pc.string_is_ascii(keys).to_numpy(zero_copy_only=False)):
        numbers[at] = file_group_number(keys[at].as_py(), file_groups)
    return numbers
