"""Where metrics go: files that a collector reads."""
