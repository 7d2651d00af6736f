"""`Table`, the public face, by subject, and the table service."""
