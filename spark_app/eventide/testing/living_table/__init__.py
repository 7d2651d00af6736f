"""A table that services, other engines and dying processes act upon, with an account of what has completed."""
