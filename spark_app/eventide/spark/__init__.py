"""Spark: the engine, sessions, DataFrames in and out, `format("eventide")`, and streams.

`datasource`, `datasource_writers`, `change_stream` and `streaming` import `eventide.table`; the table imports the others,
which don't import it. A module that imports PySpark is imported only where it is used: a table needs no PySpark.
"""
