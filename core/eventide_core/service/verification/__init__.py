"""Gathers the facts for the checks of `action/verification`, and runs them. Imports `metadata_table` and below."""
