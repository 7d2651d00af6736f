"""Where a table's files lie: one backend a file."""
