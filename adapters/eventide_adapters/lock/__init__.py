"""Table locks: Hudi's lock providers."""
