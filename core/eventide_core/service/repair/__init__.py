"""Repairs of what a verification finds."""
