"""How a table's files are written: Avro, JSON and Parquet bytes to and from the core's values.

    metadata_table | write    Hudi's metadata table; the records of a write
    merge                     log files onto their base, by columns
    log_file                  log blocks and what is in them
    base_file | timeline      base files; the files of `.hoodie`
    avro                      schemas and records, which all the others use

Each room knows the rooms below it. `schemas/` holds Hudi's own Avro schemas.
"""
