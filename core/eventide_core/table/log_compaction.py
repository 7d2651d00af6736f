"""Which blocks count after a log compaction has merged some of a slice's blocks into one.

The merged block lies after the others and names the instants that it holds. The originals stay in their files, and:

1. An instant that is named has its place taken by the block that names it, or by the one that merged that block in turn.
2. The merged block counts once, in the place of the newest of its originals: a block written between the log compaction's
   plan and its end stays the newer one, though it may lie before the merged block.
3. A merged block of whose originals none counts (an incremental query asks for other commits) doesn't count either.

This is how Hudi's second log scanner reads; its first one reads originals and merged block, which comes to the same where
nothing was written in between.
"""

from collections.abc import Mapping, Sequence


def counting_instants(instants: Sequence[str], merged: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The instants whose blocks count, in reader order.

    `instants` are those of the slice's blocks, each once, in order of first appearance; `merged` says of the instants of
    log compactions which ones they merged.
    """
    taken_by: dict[str, str] = {}
    counting: dict[str, None] = {}
    for instant in reversed(instants):
        if instant in merged:
            taken_by.update({original: taken_by.get(instant, instant) for original in merged[instant]})
        else:
            counting.setdefault(taken_by.get(instant, instant))
    return tuple(reversed(counting))
