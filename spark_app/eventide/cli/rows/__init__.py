"""Verbs that write, change and read rows and columns. Imports no other room of verbs."""
