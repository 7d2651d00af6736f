"""Verbs that show, check and repair a table, keep and undo its states, and remove what nothing needs.

Imports no other room of verbs.
"""
