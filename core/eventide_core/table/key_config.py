"""The columns of a record's key in a table without meta fields."""

import re
from collections.abc import Mapping

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.properties import names

_KEY_GENERATORS = ("", "SIMPLE", "COMPLEX", "TIMESTAMP", "TIMESTAMPBASED", "CUSTOM", "NONPARTITION", "NONPARTITIONED")
"""The key generators, by type or by class, that make keys of the record key fields alone."""


def virtual_key_fields(properties: Mapping[str, str], root: str) -> tuple[str, ...]:
    """The columns that make up a record's key where the files have no meta fields; none where they have.

    Raises UnsupportedTableError if Hudi's readers would make another key of the columns.
    """
    if properties.get("hoodie.populate.meta.fields", "true").lower() == "true":
        return ()
    fields = names(properties, "hoodie.table.recordkey.fields")
    generator = properties.get("hoodie.table.keygenerator.type") or properties.get(
        "hoodie.table.keygenerator.class", ""
    )
    kind = re.sub(r"(_AVRO|Avro)?(KeyGenerator)?$", "", generator.rpartition(".")[2]).replace("_", "").upper()
    cure = "rewrite it with hoodie.populate.meta.fields=true"
    if not fields:
        raise UnsupportedTableError(f"{root}: a table with neither meta fields nor record key fields; {cure}")
    if kind not in _KEY_GENERATORS:
        raise UnsupportedTableError(f"{root}: without meta fields, the keys of {generator} are unknown; {cure}")
    if kind == "COMPLEX" and len(fields) == 1:
        # Its writers write `id:k1` or `k1`, by an option of each write; Hudi's readers assume the latter.
        raise UnsupportedTableError(
            f"{root}: without meta fields, the form of the ComplexKeyGenerator's keys of one field is unknown; {cure}"
        )
    return fields
