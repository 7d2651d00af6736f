"""Plans a compaction and runs it. Imports `rollback`, `facts` and `state`."""
