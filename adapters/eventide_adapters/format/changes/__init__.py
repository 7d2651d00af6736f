"""What differs between views of a slice: the changes of a write, windows of event time, and audits of copies and merges.

Imports `log_content` and below.
"""
