"""The schema of a table: Avro types and names, and how it has evolved."""
