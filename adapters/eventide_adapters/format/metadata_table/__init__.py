"""Hudi's metadata table: its HFiles, its records, and what each commit of the table adds to it.

Imports every other package except `write`.
"""
