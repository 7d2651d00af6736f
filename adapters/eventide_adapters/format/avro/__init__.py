"""Avro: schemas, records by columns, schema resolution, and limits of what is read into memory.

Imports no other room of the format.
"""
