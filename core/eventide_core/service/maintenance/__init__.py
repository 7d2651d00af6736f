"""Table services other than compaction: clean, archive, catalog sync. Imports `rollback` and below."""
