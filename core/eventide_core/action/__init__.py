"""What can be done to a table: facts in, a frozen plan out. An action never uses a port.

Its rooms are those of `service`; import-linter holds which knows which.
"""
