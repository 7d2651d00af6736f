"""A user-defined merger: a Python class that merges as the Java merger does that a table's merge strategy names.

The core knows the class by its name and by what it declares; format/slice/merge/record_mergers of the adapters loads and
calls it.

Of two records of a key, the class makes one. Where one of the two is a delete, `delete_rule` decides, as record_order
describes it: under COMMIT_TIME_ORDERING the later of the two stays, under EVENT_TIME_ORDERING the one with the greater
ordering value.
"""

from dataclasses import dataclass

from eventide_core.table.records.record_order import MergeRule


@dataclass(frozen=True, slots=True)
class CustomMerger:
    """`name` is `module:Class`. Each process that merges imports the class by it.

    `is_associative`: merging (a, b) and then c gives the same record as merging a with the merger's result for (b, c).
    `delete_rule` decides where one of two records is a delete, and is an order by commit time or by event time.
    """

    name: str
    is_associative: bool
    delete_rule: MergeRule


CustomMergers = tuple[tuple[str, CustomMerger], ...]
"""The user-defined mergers, by `hoodie.record.merge.strategy.id`."""
