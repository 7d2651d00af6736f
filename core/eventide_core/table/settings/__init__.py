"""The content of hoodie.properties, also of a new table's."""
