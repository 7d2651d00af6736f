"""The formats of a table's files: Avro, JSON and Parquet bytes to and from the core's values.

    metadata_table | write    Hudi's metadata table; the records of a write
    merge                     log files onto their base, by columns
    log_file                  log blocks and their content
    base_file | timeline      base files; the files of `.hoodie`
    avro                      schemas and records, which all other packages use

Each package imports only the packages below it. `schemas/` contains Hudi's own Avro schemas.
"""
