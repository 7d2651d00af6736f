"""Hudi's metadata table: what each action of the table adds to it, by index, and what one made from nothing has.

Imports every other room except `write`, `comparison` and `log_content`.
"""
