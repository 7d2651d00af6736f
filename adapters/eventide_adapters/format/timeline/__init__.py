"""The files of `.hoodie`: commits, plans, cleans, rollbacks, savepoints, and the archived timeline.

Imports `parquet` and `avro`.
"""
