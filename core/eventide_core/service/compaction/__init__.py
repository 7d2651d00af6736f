"""Plans a compaction and runs it. Imports `rollback` and below."""
