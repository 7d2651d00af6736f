"""Base files: Parquet with Hudi's meta columns and footer. Imports `encoding`."""
