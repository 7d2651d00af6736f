"""What a write decides: file groups of keys, file names and sizes, conflicts with other writes."""
