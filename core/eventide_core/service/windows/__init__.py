"""Delivers closed windows of event time to consumers. Imports `facts` and `state`."""
