"""When Hudi's metadata table is compacted, at which instant, and which of its slices are old."""
