"""How the core and the adapters use a storage: requests side by side, what takes several requests, and timelines."""
