"""How the core and the adapters use a storage: requests side by side, and what takes several requests."""
