"""Instants, the timeline, and what its files say: plans, commits, cleans, rollbacks, savepoints."""
