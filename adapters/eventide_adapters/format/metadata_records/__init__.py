"""The bytes of Hudi's metadata table: HFiles, records and how they merge. Imports `log_file`, `timeline` and below."""
