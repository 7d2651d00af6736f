"""Hudi's metadata table: what each action of the table adds to it, by index, and what one made from nothing has.

`records/` has the bytes. Imports `slice` and below.
"""
