"""The records of a write: their keys, file groups and files. Imports every other package except `metadata_table`."""
