"""How values are written in files of Avro and Parquet, and held in columns of Arrow. Imports no other room of the format.

parquet    pages, row groups and footers
avro       schemas and records
columns    columns of Arrow, from whichever file
"""
