"""A table at one moment, how an instant ends, and whether its writer lives. Imports no other room."""
