"""Log files: their blocks, the records and deletes in them, and how both are ordered. Imports `base_file` and `avro`."""
