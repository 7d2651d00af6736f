"""Runs the plan of a compaction to its commit. Imports `scheduling`, `rollback` and below."""
