"""The metadata table's upkeep, compaction and rebuild: its order of writes. Imports `facts` and `state`."""
