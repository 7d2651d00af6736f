"""The bytes of Hudi's metadata table: HFiles, records and how they merge. Imports `slice` and below."""
