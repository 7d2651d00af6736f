"""The world outside the rules: storage, file formats and locks, one foreign thing a file."""
