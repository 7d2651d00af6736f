"""Avro: schemas, columnar decoding and encoding, schema resolution, and limits of what a reader loads into memory.

Imports `columns`.
"""
