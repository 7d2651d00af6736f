"""A table at one moment, whether the writer of an instant is alive, and the files of consumers of windows.

Imports `transaction`.
"""
