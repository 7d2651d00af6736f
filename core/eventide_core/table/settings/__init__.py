"""The content of hoodie.properties, and that of a new table's."""
