"""Which findings of `verify` can be repaired, and from what."""
