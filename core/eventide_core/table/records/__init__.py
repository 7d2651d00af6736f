"""What a record is: its shape, key, event time, and which version of a key wins."""
