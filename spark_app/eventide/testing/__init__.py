"""The kit for testing your own adapter against eventide. Needs pytest."""
