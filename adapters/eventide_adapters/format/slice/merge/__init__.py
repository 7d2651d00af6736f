"""Merges a slice's log files with its base file, in columns, to compact or read the slice.

The core's `table/records/record_order` defines which version of a key wins. Imports `log_file` and below.
"""
