"""What one needs to test an adapter of one's own against eventide. Needs pytest."""
