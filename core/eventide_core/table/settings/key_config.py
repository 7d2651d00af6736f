"""The columns of a record's key in a table without meta fields."""

import re
from collections.abc import Mapping

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.property_keys import KEY_GENERATORS, POPULATE_META_FIELDS, RECORDKEY_FIELDS
from eventide_core.table.settings.properties import names

_KEY_GENERATORS = ("", "SIMPLE", "COMPLEX", "TIMESTAMP", "TIMESTAMPBASED", "CUSTOM", "NONPARTITION", "NONPARTITIONED")
"""The key generators, by type or by class, that build keys from the record key fields alone."""


def virtual_key_fields(properties: Mapping[str, str], root: str) -> tuple[str, ...]:
    """The columns that make up a record's key if the files have no meta fields; empty if they have.

    Raises UnsupportedTableError if Hudi's readers would build another key from the columns.
    """
    if properties.get(POPULATE_META_FIELDS, "true").lower() == "true":
        return ()
    fields = names(properties, RECORDKEY_FIELDS)
    named = next((key for key in KEY_GENERATORS if properties.get(key)), KEY_GENERATORS[0])
    generator = properties.get(named, "")
    kind = re.sub(r"(_AVRO|Avro)?(KeyGenerator)?$", "", generator.rpartition(".")[2]).replace("_", "").upper()
    place, cure = f"{root}: {POPULATE_META_FIELDS}=false", f"rewrite it with {POPULATE_META_FIELDS}=true"
    if not fields:
        raise UnsupportedTableError(
            f"{place}: a table with neither meta fields nor record key fields ({RECORDKEY_FIELDS}); {cure}"
        )
    if kind not in _KEY_GENERATORS:
        raise UnsupportedTableError(
            f"{place}: without meta fields, the keys of {named}={generator} are unknown; {cure}"
        )
    if kind == "COMPLEX" and len(fields) == 1:
        # Its writers write `id:k1` or `k1`, depending on an option of each write. Hudi's readers assume the latter.
        raise UnsupportedTableError(
            f"{place}: without meta fields, the form of the ComplexKeyGenerator's keys of one field is unknown; {cure}"
        )
    return fields
