"""Avro: schemas, records by columns, schema resolution, and what bytes may make a reader hold.

Imports no other room of the format.
"""
