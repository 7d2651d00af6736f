"""The name of a table in a catalog.

name := [catalog "://"] database "." table        database, table := letters, digits, "_" and "-", as in Hive and Glue

A name without a catalog looks like a relative path, so only who has a default catalog takes it for one. `s3://my.bucket`
has the form of a name, too: whether `s3` is a catalog is known to who opens catalogs.
"""

import re
from dataclasses import dataclass

_NAME = re.compile(r"(?:([A-Za-z][A-Za-z0-9+._-]*)://)?([\w-]+)\.([\w-]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class TableName:
    """`database` and `table`, in lower case as catalogs store them.

    `catalog` is None in a name without one, and as the user wrote it otherwise.
    """

    catalog: str | None
    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.catalog}://{self.qualified}" if self.catalog else self.qualified

    @property
    def qualified(self) -> str:
        """The name within its catalog."""
        return f"{self.database}.{self.table}"

    @classmethod
    def parse(cls, text: str) -> "TableName | None":
        """None for a text of another form."""
        match = _NAME.fullmatch(text)
        return None if match is None else cls(match[1], match[2].lower(), match[3].lower())
