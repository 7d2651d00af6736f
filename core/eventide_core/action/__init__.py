"""What can be done to a table: facts in, a frozen plan out. No port is seen here."""
