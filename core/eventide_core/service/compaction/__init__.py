"""Runs the plan of a compaction to its commit. `scheduling/` drafts it. Imports `rollback` and `common`."""
