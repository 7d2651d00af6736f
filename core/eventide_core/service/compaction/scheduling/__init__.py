"""Drafts the plan of a compaction and puts it on the timeline. Imports `common`."""
