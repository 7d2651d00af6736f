"""Undoes instants: rollback, and restore to a savepoint. Imports `metadata_table` and below."""
