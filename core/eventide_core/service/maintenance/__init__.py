"""Table services other than compaction: clean, archive, catalog sync. Imports the rooms from `rollback` down."""
