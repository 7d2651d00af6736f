"""Names, paths, slices and blocks of a table's files."""
