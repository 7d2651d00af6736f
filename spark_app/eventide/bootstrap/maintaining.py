"""The use cases that keep a table: its metadata table, rollbacks, cleaning, savepoints and catalogs."""

from functools import cached_property, partial
from typing import TYPE_CHECKING

from eventide.bootstrap.reading import ReadingCases

if TYPE_CHECKING:
    from eventide_core.service.common.metadata_table.rebuild import MetadataRebuilder
    from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
    from eventide_core.service.maintenance.archive import Archiver
    from eventide_core.service.maintenance.clean import Cleaner
    from eventide_core.service.maintenance.sync import Sync
    from eventide_core.service.rollback.instant import Rollback
    from eventide_core.service.rollback.restore import Restorer
    from eventide_core.service.rollback.savepoint import Savepoints
    from eventide_core.service.rollback.watermark_tags import WatermarkTags


class MaintenanceCases(ReadingCases):
    @cached_property
    def metadata(self) -> "MetadataTableUpkeep":
        from eventide_core.service.common.metadata_table.compaction import MetadataCompactor
        from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep

        compactor = MetadataCompactor(self.storage, self.files.metadata_table, self.files.codec, self.engine)
        return MetadataTableUpkeep(compactor, self.options)

    @cached_property
    def metadata_rebuilder(self) -> "MetadataRebuilder":
        from eventide_core.service.common.metadata_table.rebuild import MetadataRebuilder

        return MetadataRebuilder(self.files, self._lock)

    @cached_property
    def rollback(self) -> "Rollback":
        from eventide_core.service.rollback.instant import Rollback

        return Rollback(self.files, self.metadata, self._lock, self._liveness)

    @cached_property
    def restorer(self) -> "Restorer":
        from eventide_core.service.rollback.restore import Restorer

        return Restorer(self.files, self.metadata, self._lock, self._liveness)

    @cached_property
    def cleaner(self) -> "Cleaner":
        from eventide_core.service.maintenance.clean import Cleaner

        return Cleaner(self.files, self.metadata, self.rollback, self._lock, self._liveness, self.options)

    @cached_property
    def archiver(self) -> "Archiver":
        from eventide_core.service.maintenance.archive import Archiver

        return Archiver(self.files, self.cleaner, self._lock, self.options)

    @cached_property
    def savepoints(self) -> "Savepoints":
        from eventide_core.service.rollback.savepoint import Savepoints

        return Savepoints(self.files, self.exact_views, self._lock)

    @cached_property
    def watermark_tags(self) -> "WatermarkTags":
        from eventide_core.service.rollback.watermark_tags import WatermarkTags

        return WatermarkTags(self.savepoints, self.arrival, self._tag_schedule)

    @cached_property
    def sync(self) -> "Sync":
        from eventide.catalog import catalogs_of, open_catalog
        from eventide_core.service.maintenance.sync import CatalogSync, DatasetSync, SyncOfEach

        def of(catalog: str) -> "Sync":
            kind = DatasetSync if catalog == "datahub" else CatalogSync
            opened = partial(open_catalog, catalog, self.options, self.engine)
            return kind(self.files, self.freshness, self.arrival, opened, self.options)

        syncs = tuple(map(of, catalogs_of(self.options)))
        return syncs[0] if len(syncs) == 1 else SyncOfEach(syncs)
