"""Sources that say how far they have come: the kinds that are asked, each an adapter of `ports.ArrivalSource`."""
