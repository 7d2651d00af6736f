"""Stand-ins for what the product takes through its ports: storages, catalogs, clocks and engines that count or fail."""
