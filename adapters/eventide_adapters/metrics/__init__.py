"""Where metrics go: files that a collector reads, an endpoint that it asks, services that they are pushed to."""
