"""Log files: their blocks, the records and deletes in the blocks, and the order of both. Imports `base_file`."""
