"""The formats of a table's files: Avro, JSON and Parquet bytes to and from the core's values.

    metadata_table | write    Hudi's metadata table; the records of a write
    slice                     base files, log files and what they have together
    timeline                  the files of `.hoodie`
    encoding                  Avro, Parquet and columns of Arrow, from whichever file

Each room imports only the rooms below it. `schemas/` contains Hudi's own Avro schemas.
"""
