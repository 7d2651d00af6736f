"""Tables on each storage: their location, their options, and the form of their left-overs."""

import uuid
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from eventide import Table
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.open import open_storage
from eventide_core.config import EXCLUSIVE, LINK_MODE, Options
from eventide_core.ports import Storage
from eventide_core.table.timeline.contents.plans import LinkMode
from support.servers.cloud_servers import CloudServer
from support.servers.hdfs.mini_cluster import HdfsServer
from support.servers.s3_servers import S3Server


@dataclass(frozen=True, slots=True)
class Backend:
    """An empty location for one table. `options` are what a user has to set in addition to the URI."""

    uri: str
    options: dict[str, str]
    link_mode: LinkMode

    @property
    def storage(self) -> Storage:
        return open_storage(self.uri, Options(self.options))

    def table(self) -> Table:
        return Table.open(self.uri, self.options)

    def with_option(self, key: str, value: str) -> "Backend":
        return replace(self, options={**self.options, key: value})

    def words(self) -> list[str]:
        """The same options on a command line."""
        return [word for key, value in self.options.items() for word in ("--option", f"{key}={value}")]


def backend(name: str, request: pytest.FixtureRequest, directory: Path) -> Backend:
    """A new location on a storage: `local`, `memory`, or the name of a server's fixture, which is started."""
    place = uuid.uuid4().hex
    match name:
        case "local":
            return Backend(str(directory / "table"), {}, LinkMode.COPY)
        case "memory":
            return Backend(f"memory://{place}", {}, LinkMode.COPY)
        case "memory_with_symlinks":
            return Backend(f"memory://{place}", {EXCLUSIVE: "true", LINK_MODE: "symlink"}, LinkMode.SYMLINK)
        case _:
            server = request.getfixturevalue(name)
    if isinstance(server, S3Server | CloudServer):
        return Backend(server.uri(place), server.options, LinkMode.COPY)
    assert isinstance(server, HdfsServer)
    linked = LinkMode.SYMLINK if server.has_symlinks else LinkMode.COPY
    return Backend(f"{server.uri}/lake/{place}", server.options, linked)


def upload(directory: Path, storage: Storage) -> None:
    """Copies a table from the local disk to another storage."""
    local = LocalStorage(directory)
    waiting = [""]
    while waiting:
        for entry in local.list(waiting.pop()):
            if entry.is_directory:
                waiting.append(entry.path)
            else:
                storage.put(entry.path, local.read(entry.path))


def files_of(storage: Storage, directory: str = "") -> dict[str, str | None]:
    """Every file below the root with its link target, without the working files of eventide and Hudi."""
    found: dict[str, str | None] = {}
    for entry in storage.list(directory):
        if entry.path in (".hoodie/.aux", ".hoodie/.temp"):
            continue
        if entry.is_directory:
            found |= files_of(storage, entry.path)
        else:
            found[entry.path] = entry.link_target
    return found
