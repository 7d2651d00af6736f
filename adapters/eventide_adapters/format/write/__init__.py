"""The records of a write: their keys, file groups and files. Imports `slice` and below."""
