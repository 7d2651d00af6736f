"""A fleet of a thousand tables on a virtual clock: which share of the targets each way of choosing the next table meets."""
