"""Whole worlds from one seed: processes of the real application on one table, a slow and failing store, and simulated time.

Imports the living table, the schedules and below. `python -m eventide.testing.simulation` runs worlds, and replays one.
"""
