"""The histories that have broken partial compactions, by name."""

from collections.abc import Sequence

from eventide.testing.histories import History, delete, put


def named_histories() -> Sequence[History]:
    """One history for each thing that can make a compaction in part go wrong."""
    base = (put("k0", 1, "base"), put("k1", 2, "base"), put("k2", 3, "base"))
    return (
        History(
            "late data and ties",
            (
                (*base, put("k3", 4, "base", partition="b")),
                (put("k0", 20, "early"), put("k1", 12, "on time")),
                (put("k1", 6, "late"), put("k4", 12, "new")),
                (put("k0", 20, "tie"), put("k3", 30, "later", partition="b")),
                (put("k2", 25, "last"), put("k4", 13, "late above T"), put("k0", 20, "tie of left-overs")),
            ),
            cut_ms=10,
        ),
        History(
            "a delete that must be carried",
            (
                base,
                (put("k1", 5, "taken"), delete("k0", 25)),
                (put("k0", 20, "loses to the delete"),),
                (put("k1", 30, "last"), delete("k2", 28)),
            ),
            cut_ms=10,
        ),
        History(
            "deletes in natural order",
            (
                base,
                (put("k0", 20, "before its delete"),),
                (delete("k0"), put("k1", 11, "beside it")),
                (put("k0", 15, "after its delete"),),
                (put("k1", 30, "last"), delete("k2", 12)),
            ),
            cut_ms=10,
        ),
        History(
            "a delete in natural order that two left-overs follow",
            (
                (put("k0", 20, "base"), put("k1", 2, "base")),
                (delete("k0"),),
                (put("k0", 15, "below the old base"),),
                (put("k0", 30, "above it"), put("k1", 31, "last")),
            ),
            cut_ms=10,
        ),
    )
