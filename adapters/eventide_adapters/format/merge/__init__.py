"""Merges a slice's log files with its base file, in columns, to compact, read or audit the slice.

The core's `table/records/record_order` defines which version of a key wins. Imports `log_file`, `base_file` and `avro`.
"""
