"""Gathers what the checks of `action/verification` look at, and asks them. Imports `facts` and `state`."""
