"""Rows that a query returns, filters on them, and rows that a write takes."""
