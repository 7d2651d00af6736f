"""Undoes instants: rollback, and restore to a savepoint. Imports `facts` and `state`."""
