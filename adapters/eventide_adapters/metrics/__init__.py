"""Metrics sinks: files that a collector reads, an endpoint that it polls, services that receive pushes."""
