"""Parquet as Hudi's files need it: pages, row groups and footers that Arrow reads or writes otherwise, or not at all.

Imports `avro` and `columns`.
"""
