"""Base files: Parquet with Hudi's meta columns, bloom filter and footer. Imports `avro`."""
