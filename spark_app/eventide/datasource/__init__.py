"""The format `eventide` of Spark: a Python data source, its streams and SQL functions. Imports `table`."""
