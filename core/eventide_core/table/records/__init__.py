"""What a record is: schema, key, event time, and which version of a key wins."""
