"""Answers what a user asks of a table: the four queries, windows of event time, metrics, offending records.

Imports `rollback` (its savepoints) and below.
"""
