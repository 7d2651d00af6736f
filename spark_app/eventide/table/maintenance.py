"""What keeps a table sound: rollback, cleaning, archiving, states that are kept, verification, repair, catalogs."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from eventide.bootstrap import assemble
from eventide.catalog import located
from eventide.table.arguments import (
    options_of,
    progress_of,
    require_given_texts,
    require_names,
    require_number,
    require_texts,
    uri_of,
)
from eventide.table.open_table import OpenTable, task_engine, traced
from eventide_core.errors import ConfigError
from eventide_core.ports import Progress
from eventide_core.table.records.event_time import parse_threshold

# A method imports what only it needs.
if TYPE_CHECKING:
    from eventide.rows.given import TaskEngine
    from eventide_core.action.repair.lost_keys import LostKeys
    from eventide_core.action.verification.result import Verification
    from eventide_core.service.common.metadata_table.rebuild import RebuiltMetadataTable
    from eventide_core.service.maintenance.clean import CleanResult
    from eventide_core.service.maintenance.sync import SyncResult
    from eventide_core.service.repair.lost_settings import RecoveredSettings
    from eventide_core.service.repair.repair import RepairResult, UndoneRepair
    from eventide_core.service.rollback.savepoint import Tag
    from eventide_core.table.settings.metadata_table import MetadataTableStatus
    from eventide_core.table.timeline.contents.savepoint_metadata import SavepointMetadata


class TableMaintenance(OpenTable):
    """The maintenance of `eventide.Table`."""

    __slots__ = ()

    @traced
    def rollback(self, instant: str, *, force: bool = False) -> tuple[str, ...]:
        """Undoes the action at an instant, and returns the removed paths: none if it was rolled back before.

        Raises RefusedError if undoing a completed action would lose anything else, and BusyError while its writer is alive.
        `force` also undoes a pending action without a heartbeat, for which nothing shows whether its writer is alive.
        """
        require_texts(instant=instant)
        return self._application.rollback.undo(instant, force=force)

    @traced
    def clean(self, retain_commits: int | None = None, *, dry_run: bool = False) -> "CleanResult":
        """Removes the files that no retained slice, pending plan, savepoint or link needs. `dry_run` only lists them.

        `retain_commits`, 1 or more, overrides the policy of the options (`hoodie.cleaner.policy` and similar keys).
        """
        require_number(retain_commits=retain_commits)
        if retain_commits == 0:
            raise ConfigError("retain_commits=0 would leave nothing to readers of the last commit: pass 1 or more")
        cleaner = self._application.cleaner
        return cleaner.plan(retain_commits) if dry_run else cleaner.clean(retain_commits)

    @traced
    def archive(self) -> tuple[str, ...]:
        """Moves old instants to the archived timeline, and returns their requested times, oldest first.

        `hoodie.keep.min.commits` and `hoodie.keep.max.commits` set the bounds. Instants that cleaning, a savepoint or a
        pending action still needs stay.
        """
        return self._application.archiver.archive()

    @traced
    def restore(self, savepoint: str) -> tuple[str, ...]:
        """Undoes every write after a savepoint, and returns their instants, newest first."""
        require_texts(savepoint=savepoint)
        return self._application.restorer.restore(savepoint)

    @traced
    def savepoint(self, instant: str, *, comments: str = "", tag: str | None = None) -> "SavepointMetadata":
        """Keeps the table as of the completed write at an instant: cleaning removes nothing of it until you delete it.

        `tag` is a name for the savepoint. Hudi stores it in the comments.
        """
        require_texts(instant=instant, comments=comments)
        require_given_texts(tag=tag)
        return self._application.savepoints.save(instant, comments=comments, tag=tag)

    @traced
    def delete_savepoint(self, instant: str) -> None:
        require_texts(instant=instant)
        self._application.savepoints.delete(instant)

    @traced
    def tag(
        self,
        name: str,
        *,
        instant: str | None = None,
        as_of_watermark: str | int | None = None,
        comments: str = "",
    ) -> "Tag":
        """Keeps the table under a name: as of an instant, as of the compaction that reached a watermark, or as it is now.

        `snapshot(tag=name)` and `read_optimized(tag=name)` read it.
        """
        if not isinstance(name, str):
            raise ConfigError(f"a tag's name must be a string, not {name!r}")
        require_texts(comments=comments)
        require_given_texts(instant=instant)
        if instant is not None and as_of_watermark is not None:
            raise ConfigError("pass either an instant or a watermark, not both")
        threshold_ms = None if as_of_watermark is None else parse_threshold(as_of_watermark)
        return self._application.savepoints.save_tag(
            name, instant=instant, threshold_ms=threshold_ms, comments=comments
        )

    def tags(self) -> "tuple[Tag, ...]":
        """All tags, sorted by name."""
        return self._application.savepoints.tags()

    @traced
    def delete_tag(self, name: str) -> str:
        """Deletes a tag, and returns its instant."""
        require_texts(name=name)
        return self._application.savepoints.delete_tag(name)

    @traced
    def verify(
        self,
        *,
        deep: bool = False,
        engine: "TaskEngine | None" = None,
        progress: Progress | None = None,
    ) -> "Verification":
        """Checks the invariants of the table. The answer lists damage, and what was not checked. Writes nothing.

        It checks names, sizes, headers and footers. `deep` also reads every record of the latest slices. Damage is part of
        the answer and raises no error.
        """
        return self._on(engine).verifier.verify(is_deep=deep, progress=progress_of(progress))

    @traced
    def repair(
        self,
        *checks: str,
        deep: bool = False,
        apply: bool = False,
        engine: "TaskEngine | None" = None,
        progress: Progress | None = None,
    ) -> "RepairResult":
        """Lists the repairs of what `verify` finds; with `apply`, makes them under the table lock.

        `checks` limits them to the findings of these checks. Every file that changes is first copied to `.hoodie/.backup`.
        An interrupted repair is completed by the next call with `apply`. Raises ConfigError for an unknown check, and
        RefusedError if someone else changed a file meanwhile.
        """
        require_names(checks=checks)
        repairer = self._on(engine).repairer
        run = repairer.apply if apply else repairer.plan
        return run(checks, is_deep=deep, progress=progress_of(progress))

    @traced
    def lost_keys(
        self, *, engine: "TaskEngine | None" = None, progress: Progress | None = None
    ) -> "tuple[LostKeys, ...]":
        """The keys that missing and damaged files take with them, for each file group of which files are lost.

        They come from the record index of Hudi's metadata table, or from the previous file slice, if that is whole.
        Otherwise, they are unknown. Writes nothing. Raises CorruptTimelineError while the timeline is damaged.
        """
        return self._on(engine).lost_keys.read(progress_of(progress))

    @staticmethod
    def recover_settings(
        uri: str | PathLike[str],
        settings: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        *,
        apply: bool = False,
    ) -> "RecoveredSettings":
        """What the files of a table show of its lost `hoodie.properties`; with `apply`, writes the file.

        `settings` are those that the files don't show; an empty value stands for one that the table didn't have. `apply`
        raises ConfigError if one is missing. Raises RefusedError if the table has its settings.
        """
        recovery = assemble(*located(uri_of(uri), options_of(options))).settings_recovery
        return (recovery.apply if apply else recovery.plan)(settings or {})

    @traced
    def undo_repair(self, instant: str | None = None) -> "UndoneRepair":
        """Undoes the repair at that instant, or the latest one.

        Raises NothingToDoError, and RefusedError if an action has begun since or someone else changed a file.
        """
        require_given_texts(instant=instant)
        return self._application.repairer.undo(instant)

    def metadata_table(self) -> "MetadataTableStatus | None":
        """The state of Hudi's metadata table; None if the table has none."""
        status = self._application.files.metadata_table.load().facts.status
        return status if status.partitions else None

    @traced
    def rebuild_metadata_table(
        self, indexes: Sequence[str] | None = None, *, engine: "TaskEngine | None" = None
    ) -> "RebuiltMetadataTable":
        """Rebuilds Hudi's metadata table, also if there is none: `files`, and the `indexes`.

        `indexes` are of `bloom_filters`, `column_stats` (with `partition_stats`) and `record_index`; by default those that
        the old one has. Every writer has to share the table lock. Raises BusyError if a write is pending, and
        UnsupportedTableError for another index.
        """
        if indexes is not None:
            require_names(indexes=indexes)
        return self._on(engine).metadata_rebuilder.rebuild(indexes)

    @traced
    def sync(
        self,
        catalog: str | None = None,
        *,
        database: str | None = None,
        name: str | None = None,
        engine: "TaskEngine | None" = None,
    ) -> "SyncResult":
        """Updates a catalog: the `_ro` and `_rt` tables, partitions, schema and freshness. Writes only what has changed.

        Hudi's keys `hoodie.datasource.hive_sync.*` apply; `database` and `name` override them. `catalog` is `hive`, a Hive
        Metastore, `glue`, AWS Glue, or `datahub`, where the table is one dataset; without it, the options decide. If the
        engine is a SparkSession with Hive support, a sync of Hive uses its client, otherwise Thrift. Raises CatalogError if
        the catalog fails, DatabaseNotFoundError, ConfigError, and RefusedError if another table has the name.
        """
        from eventide.table.sync import sync_options

        require_given_texts(catalog=catalog, database=database, name=name)
        options = sync_options(self.options, catalog, database, name)
        asked = self._application.engine if engine is None else task_engine(engine)
        return assemble(self.uri, options, engine=asked, storage=self._application.storage).sync.sync()
