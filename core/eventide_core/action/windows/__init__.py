"""Which windows of event time a consumer gets next, and which ones late data has changed."""
