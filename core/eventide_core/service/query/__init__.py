"""Answers what a user asks of a table: the four queries, metrics, offending records.

Imports `rollback` (its savepoints) and below.
"""
