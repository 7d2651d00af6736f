"""A table at one moment, the outcome of an instant, whether its writer is alive, and the files of consumers of windows.

Imports no other room.
"""
