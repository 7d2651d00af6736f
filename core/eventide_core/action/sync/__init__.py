"""What a catalog must be told."""
