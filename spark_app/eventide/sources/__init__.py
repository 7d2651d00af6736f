"""Rows from files as users have them: CSV, JSON lines and Parquet, compressed or not, on every store.

May import the storages. Nothing but the command line imports it.
"""
