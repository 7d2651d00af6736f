"""Which catalogs the options name, and a sync to several of them."""

from dataclasses import dataclass

import pytest

from eventide import CatalogError, ConfigError
from eventide.catalog import catalogs_of
from eventide_core.config import SYNC_TOOLS, Options
from eventide_core.service.maintenance.sync import SyncedTable, SyncOfEach, SyncResult

DATAHUB = "org.apache.hudi.sync.datahub.DataHubSyncTool"


@dataclass
class Synced:
    name: str
    fails: bool = False
    count: int = 0

    def sync(self) -> SyncResult:
        self.count += 1
        if self.fails:
            raise CatalogError(f"{self.name} does not answer")
        return SyncResult(self.name, (SyncedTable(self.name, True, False, 0, 0, 0),), {"key": "value"})


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        (None, ("hive",)),
        ("org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool", ("glue",)),
        (f"HiveSyncTool,{DATAHUB}", ("hive", "datahub")),
        (f"{DATAHUB},{DATAHUB}", ("datahub",)),
    ],
)
def test_hudis_classes_name_the_catalogs(tools: str | None, names: tuple[str, ...]) -> None:
    assert catalogs_of(Options({} if tools is None else {SYNC_TOOLS: tools})) == names


def test_another_class_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"eventide has no sync by my\.Tool: use .*HiveSyncTool, .*DataHubSyncTool"):
        catalogs_of(Options({SYNC_TOOLS: f"HiveSyncTool, my.Tool, {DATAHUB}"}))


def test_each_catalog_is_updated_also_where_one_before_it_fails() -> None:
    first, second = Synced("first"), Synced("second")
    done = SyncOfEach((first, second)).sync()
    assert (done.database, [one.name for one in done.tables]) == ("first", ["first", "second"])

    first.fails = True
    with pytest.raises(CatalogError, match="first does not answer"):
        SyncOfEach((first, second)).sync()
    assert (first.count, second.count) == (2, 2)
