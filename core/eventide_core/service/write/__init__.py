"""Writes records: upsert, insert, bulk insert, delete; batches of a stream. Imports `rollback` and below."""
