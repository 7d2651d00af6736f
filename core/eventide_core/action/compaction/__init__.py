"""What a compaction decides: trigger, strategy, cut, split, and the names and links of left-overs."""
