"""What can be done to a table: facts in, a frozen plan out. An action never uses a port.

Its rooms are the subjects of `service`, and `freshness`, `fleet` and `sync`. import-linter enforces which imports which.
"""
