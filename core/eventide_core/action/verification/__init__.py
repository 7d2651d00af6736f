"""The invariants of a table, as named checks over facts."""
