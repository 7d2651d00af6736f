"""Which blocks count after a log compaction has merged some of a slice's blocks into one.

The merged block is behind the others and names the instants that it contains. The originals stay in their files. The
rules:

1. The block that names an instant replaces that instant's blocks. If another block merged that block in turn, it replaces
   both.
2. The merged block counts once, at the position of its newest original. So a block that was written between the log
   compaction's plan and its end stays the newer one, although it may precede the merged block.
3. A merged block none of whose originals counts doesn't count either, for example in an incremental query of other commits.

Hudi's second log scanner reads in this way. Its first one reads originals and the merged block, which has the same
result if nothing was written in between.
"""

from collections.abc import Mapping, Sequence


def counting_instants(instants: Sequence[str], merged: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The instants whose blocks count, in reader order.

    `instants` are the slice's blocks', without duplicates, in order of first appearance. `merged` maps the
    instants of log compactions to the instants that they merged.
    """
    taken_by: dict[str, str] = {}
    counting: dict[str, None] = {}
    for instant in reversed(instants):
        if instant in merged:
            taken_by.update({original: taken_by.get(instant, instant) for original in merged[instant]})
        else:
            counting.setdefault(taken_by.get(instant, instant))
    return tuple(reversed(counting))
