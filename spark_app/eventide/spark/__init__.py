"""Spark: the engine, sessions, and DataFrames in and out. Imports no room of the application.

A module that imports PySpark is imported only where it is used: a table needs no PySpark.
"""
