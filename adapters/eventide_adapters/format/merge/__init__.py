"""Merges a slice's log files with its base, by columns, to compact, read or audit it.

Which version of a key wins is said by the core's `table/record_order`. Imports `log_file`, `base_file` and `avro`.
"""
