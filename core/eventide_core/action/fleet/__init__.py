"""Which table of a fleet is compacted next."""
