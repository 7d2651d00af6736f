"""What use cases ask of a table: event times, freshness, past compactions, files in use. Imports `state`."""
