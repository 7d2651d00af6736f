"""How a table's files are written: Avro, JSON and Parquet bytes to and from the core's values."""
