"""Use cases: read through ports, ask an action, write through ports."""
