"""Gathers the facts for the checks of `action/verification`, and runs them. Imports `facts` and `state`."""
