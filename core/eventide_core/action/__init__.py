"""What can be done to a table: facts in, a frozen plan out. An action never uses a port."""
