"""Facts about a table for the use cases: event times, freshness, past compactions, files in use. Imports `state`."""
