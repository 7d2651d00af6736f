"""What hoodie.properties says, and what a new table's says."""
