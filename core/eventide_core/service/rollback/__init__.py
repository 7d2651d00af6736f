"""Undoes instants: rollback, and restore to a savepoint. Imports `common`."""
