"""A table at one moment, the outcome of an instant, and whether its writer is alive. Imports no other room."""
