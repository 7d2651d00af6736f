"""Repairs of what a verification finds. Imports `verification`, `compaction` and below."""
