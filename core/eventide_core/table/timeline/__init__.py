"""Instants, the timeline, and the content of its files: plans, commits, cleans, rollbacks, savepoints."""
