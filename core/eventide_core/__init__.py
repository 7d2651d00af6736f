"""The rules of eventide: what a Hudi table is, and what may be done to it. Standard library only."""
