"""A table as catalogs and metrics know it."""
