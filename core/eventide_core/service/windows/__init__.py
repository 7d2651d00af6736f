"""Delivers closed windows of event time to consumers; each file states its order of writes."""
