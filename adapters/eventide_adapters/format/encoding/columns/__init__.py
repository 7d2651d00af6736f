"""Columns of Arrow from whichever file: their event times, and values passed on without pandas. Imports no other room."""
