"""What reports compactions to other systems: lineage and metrics."""
