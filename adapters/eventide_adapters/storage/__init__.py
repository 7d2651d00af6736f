"""The storages of a table's files: one backend per module."""
