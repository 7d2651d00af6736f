"""Catalogs in which engines find tables by name."""
