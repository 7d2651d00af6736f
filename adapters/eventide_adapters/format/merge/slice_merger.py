"""Compacts one slice: what an executor does for one operation of a plan.

1. The logs named in the plan have the sizes that the plan saw: nothing was appended since.
2. Left-overs become visible in the new slice, the last one first, each whole or not at all. A reader that meets them
   halfway sees a suffix of the slice's logs twice, which changes nothing; a prefix would.
3. Base and merged logs are read strictly, merged, and written to a file that nobody sees yet. With an exact cut so are
   the records of left-overs that lie before it.
4. Deletes with an ordering value that beat a record in a left-over, but left no row in the base: they are carried in
   DELETE blocks of their original instants, in the log that comes first in reader order, and so is made last.
5. The marker by which Hudi finds an unfinished base file, then the base file gets its name.

Every step may have been done by an attempt before: what is there must be what this one would write, and the result of a
base file that is there stands in its footer. A crash between two steps leaves files that the plan names, no more.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from eventide_adapters.format.avro.schema import RECORD_KEY, table_fields
from eventide_adapters.format.base_file.bloom_filter import DEFAULT_PARAMETERS, BloomFilterBuilder
from eventide_adapters.format.base_file.dictionary_columns import dictionary_fields
from eventide_adapters.format.base_file.parquet import (
    BaseFileWriter,
    BaseFooter,
    earlier_bloom,
    read_footer,
)
from eventide_adapters.format.base_file.virtual_key import read_keyed_base_and_footer
from eventide_adapters.format.log_file.records import iter_log_records
from eventide_adapters.format.merge.base_merge import SliceMerge
from eventide_adapters.format.merge.carried_deletes import carry, contradicted
from eventide_adapters.format.merge.early_records import EarlyRecords
from eventide_adapters.format.merge.log_fold import FoldedLogs
from eventide_adapters.format.merge.malloc_settings import apply_malloc_settings
from eventide_core.config import ParquetCodec
from eventide_core.errors import MissingFileError, PlanMismatchError
from eventide_core.ports import MergeResult, MergeTask, Storage
from eventide_core.table.plans import LinkMode
from eventide_core.table.schema import FILE_NAME, META_FIELDS

RESULT_FOOTER_KEY: Final = "eventide.merge_result"


@dataclass(frozen=True, slots=True)
class ArrowSliceMerger:
    """ports.RecordMerger over a storage."""

    storage: Storage

    def __call__(self, task: MergeTask, /) -> MergeResult:
        """Raises PlanMismatchError, MissingFileError, and what reading the slice raises; nothing is skipped."""
        for path, size in (*task.merged, *((path, size) for path, size, _ in task.left_overs)):
            _check_size(self.storage, path, size)
        link_left_overs(self.storage, task)
        done = finished_result(self.storage, task)
        return done if done is not None else self._merge(task)

    def _merge(self, task: MergeTask) -> MergeResult:
        apply_malloc_settings()
        # All columns but the one that every row of the new file has alike.
        fields = [field for field in table_fields(task.shape.schema) if field.name != FILE_NAME]
        names = [field.name for field in fields]
        early = EarlyRecords(self.storage, task, names)
        logs = FoldedLogs.of(
            itertools.chain(
                iter_log_records(self.storage, task.merged, task.shape, task.blocks, names, is_strict=True), early
            ),
            pa.schema([field.arrow for field in fields]),
            task.shape,
        )
        merge = SliceMerge(logs, task.shape)
        footer: BaseFooter | None = None
        base: Iterator[pa.RecordBatch] = iter(())
        if task.base_path is not None:
            few = dictionary_fields(fields, task.shape)
            footer, base = read_keyed_base_and_footer(self.storage, task.base_path, fields, task.shape, few)
        bloom, are_keys_known = _bloom(footer, task, int(np.count_nonzero(logs.is_delete)))
        output = self.storage.open_output(task.new_base_path)
        try:
            with BaseFileWriter(output, task.shape.schema, codec=_codec(footer, task), bloom=bloom) as writer:
                for table in merge.met(base):
                    writer.write(_as_written(table, task), are_keys_known=are_keys_known)
                writer.write(_as_written(merge.inserted(), task))
                carried = contradicted(self.storage, task, merge.tombstones, early)
                result = MergeResult(
                    new_base_path=task.new_base_path,
                    base_size=0,
                    num_writes=writer.row_count,
                    num_deletes=merge.deletes,
                    num_updates=merge.updates,
                    num_inserts=merge.inserts,
                    log_records=logs.record_count,
                    log_blocks=logs.block_count,
                    carried_size=carry(self.storage, task, carried),
                    carried_tombstones=len(carried.keys),
                    uncompacted_from_ms=early.uncompacted_from_ms,
                    merged_keys=len(logs.keys),
                )
                size = writer.close({RESULT_FOOTER_KEY: _encode_result(task, result)})
            self.storage.put_if_absent(task.marker_path, b"")
            is_published = output.commit()
        finally:
            output.abort()
        written = replace(result, base_size=size)
        done = self._as_published(task, written) if is_published else None
        # Read back where the name was taken meanwhile: what stands there counts.
        done = finished_result(self.storage, task) if done is None else done
        if done is None:
            raise MissingFileError(
                f"{task.new_base_path} was removed as soon as it was written: the plan is rolled back"
            )
        return done

    def _as_published(self, task: MergeTask, written: MergeResult) -> MergeResult | None:
        """The result of the file that was published, if that is what stands there."""
        info = self.storage.stat(task.new_base_path)
        if info is None or info.size != written.base_size:
            return None
        _check_carried(self.storage, task, written)
        return written


def _codec(footer: BaseFooter | None, task: MergeTask) -> str:
    if task.codec != ParquetCodec.AS_BEFORE:
        return task.codec
    return "gzip" if footer is None else footer.codec


def _bloom(footer: BaseFooter | None, task: MergeTask, deletes: int) -> tuple[BloomFilterBuilder | None, bool]:
    """The filter to be filled, None where the table has no keys to be found by, and whether it has the base's keys.

    The base's own filter goes on, until a tenth of its keys are of rows that are no more: each of those is as likely to be
    taken for a row as one of a row is found.
    """
    if task.shape.key_fields:
        return None, False
    earlier = None if footer is None else earlier_bloom(footer, task.base_path or "")
    if footer is None or earlier is None:
        return BloomFilterBuilder(DEFAULT_PARAMETERS), False
    gone = -1 if earlier.key_count is None else earlier.key_count - footer.row_count
    if gone >= 0 and 10 * (gone + deletes) <= footer.row_count:
        return BloomFilterBuilder.going_on(earlier), True
    return BloomFilterBuilder(earlier.parameters), False


def link_left_overs(storage: Storage, task: MergeTask) -> None:
    """Gives each left-over that needs one its name in the new slice, the last one first."""
    for source, size, target in reversed(task.left_overs):
        if target is None:
            continue
        match LinkMode(task.link_mode):
            case LinkMode.COPY:
                storage.copy_if_absent(source, target)
            case LinkMode.HARDLINK:
                storage.link_if_absent(source, target, is_symbolic=False)
            case LinkMode.SYMLINK:
                storage.link_if_absent(source, target, is_symbolic=True)
            case LinkMode.PREFIX:
                raise PlanMismatchError(
                    f"the plan at {task.instant} links {source} to {target} in mode prefix, which needs no links"
                )
        _check_size(storage, target, size)


def finished_result(storage: Storage, task: MergeTask) -> MergeResult | None:
    """What the attempt that wrote the base file found; None where there is none yet.

    Raises PlanMismatchError where the file of that name is not this plan's.
    """
    info = storage.stat(task.new_base_path)
    if info is None:
        return None
    text = read_footer(storage, task.new_base_path).get(RESULT_FOOTER_KEY, "{}")
    result = _decode_result(text, task, info.size)
    if result is None:
        raise PlanMismatchError(
            f"{task.new_base_path} is there, but the plan at {task.instant} didn't write it: roll the plan back and plan "
            "again"
        )
    _check_carried(storage, task, result)
    return result


def _check_carried(storage: Storage, task: MergeTask, result: MergeResult) -> None:
    if task.carried_path is not None and result.carried_size is not None:
        _check_size(storage, task.carried_path, result.carried_size)


def _check_size(storage: Storage, path: str, size: int) -> None:
    info = storage.stat(path)
    if info is None:
        raise MissingFileError(f"{path}, which the plan names, is not there: roll the plan back and plan again")
    if info.size != size:
        raise PlanMismatchError(
            f"{path} has {info.size} bytes, but {size} by the plan: roll the plan back and plan again"
        )


def _as_written(table: pa.Table, task: MergeTask) -> pa.Table:
    """With the new file's name in every row, and the keys taken out again that were made of the columns."""
    if task.shape.key_fields:
        place = table.schema.get_field_index(RECORD_KEY)
        table = table.set_column(place, table.schema.field(place), pa.nulls(len(table), pa.string()))
    name = task.new_base_path.rpartition("/")[2]
    # Held once, not once a row.
    names = pa.DictionaryArray.from_arrays(np.zeros(len(table), np.int32), pa.array([name]))
    return table.add_column(META_FIELDS.index(FILE_NAME), pa.field(FILE_NAME, names.type), names)


def _identity(task: MergeTask) -> tuple[str, list[str], dict[str, int]]:
    """What tells the base file of this task from another's: its instant, the logs it merges, and those it merges early."""
    early = {path.rpartition("/")[2]: before_ms for path, before_ms in task.early.items()}
    return task.instant, [path.rpartition("/")[2] for path, _ in task.merged], early


def _encode_result(task: MergeTask, result: MergeResult) -> str:
    counts = {k: v for k, v in asdict(result).items() if k not in ("new_base_path", "base_size")}
    instant, merged, early = _identity(task)
    return json.dumps({"instant": instant, "merged": merged, "early": early, "result": counts}, sort_keys=True)


def _decode_result(text: str, task: MergeTask, base_size: int) -> MergeResult | None:
    """The result in a footer; None where it is another task's, or nobody's."""
    try:
        written = json.loads(text)
        if (written.get("instant"), written.get("merged"), written.get("early", {})) != _identity(task):
            return None
        return MergeResult(**{**written["result"], "new_base_path": task.new_base_path, "base_size": base_size})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
