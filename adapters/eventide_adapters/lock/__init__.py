"""Who may change a table's timeline now: Hudi's lock providers."""
