"""What tells others of compactions: lineage and metrics."""
