"""Compares views of a slice: changes of a write, windows of event time, and audits of keys, copies and merges.

Imports `log_content` and below.
"""
