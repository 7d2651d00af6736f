"""A table and its partitions in a Hive catalog."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

EXTERNAL_TABLE = "EXTERNAL_TABLE"
EXTERNAL = "EXTERNAL"


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column. `type` is a Hive type, such as `struct<a:int,b:string>`."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table's entry in a catalog. Names and types are in lower case, as catalogs store them.

    `name` is unique in `database`. `kind` is EXTERNAL_TABLE, MANAGED_TABLE, VIRTUAL_VIEW, ..., and is never changed.
    `location` is the table's directory. `columns` are in order, without the `partition_columns`, which a catalog can't
    change. `input_format`, `output_format` and `serde` are Java classes; the first decides whether Hive reads base files or
    snapshots. A view has no location and no formats (empty strings). `serde_properties` state for Spark where the table is
    and what it shows. `properties` may contain more than was written, because a catalog adds its own; so may
    `serde_properties`.
    """

    database: str
    name: str
    kind: str
    location: str
    columns: tuple[CatalogColumn, ...]
    partition_columns: tuple[CatalogColumn, ...]
    input_format: str
    output_format: str
    serde: str
    serde_properties: Mapping[str, str]
    properties: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def parameters(self) -> dict[str, str]:
        """The properties, with Hive's second property for the kind of an external table."""
        return {**({EXTERNAL: "TRUE"} if self.kind == EXTERNAL_TABLE else {}), **self.properties}


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition: `values`, one for each partition column, as texts; and its directory.

    `location` is the whole location, beginning with the table's own.
    """

    values: tuple[str, ...]
    location: str


def batches_of(partitions: Sequence[CatalogPartition], size: int) -> Iterator[Sequence[CatalogPartition]]:
    """The partitions, at most so many in one request."""
    return (partitions[i : i + size] for i in range(0, len(partitions), size))


def hadoop_location(location: str) -> str:
    """A table's location in Hadoop's form: `file:/lake/trips` for a local one, without a trailing slash."""
    return (f"file:/{location[8:]}" if location.startswith("file:///") else location).rstrip("/")


def is_same_place(one: str, other: str) -> bool:
    """Whether two locations are one directory, such as `file:/a` and `/a/`, or s3:// and s3a:// of a bucket.

    A location without a host or bucket may belong to any default, so only its path is compared.
    """
    (one_host, one_path), (other_host, other_path) = _parts(one), _parts(other)
    return one_path == other_path and (one_host == other_host or not one_host or not other_host)


def _parts(location: str) -> tuple[str, str]:
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        rest = location
    host = ""
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
    return host, "/" + "/".join(part for part in rest.split("/") if part)
