"""The records of a write: their keys, their file groups, their files. Imports every other room but `metadata_table`."""
