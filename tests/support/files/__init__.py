"""The files of a table, written without the code under test, and the parsers that read such files."""
