"""The formats of a table's files: Avro, JSON and Parquet bytes to and from the core's values.

    metadata_table | write | changes    Hudi's metadata table; the records of a write; what differs between views
    log_content | metadata_records      what log files contain, for the planner; the metadata table's records
    merge                               log files onto their base, by columns
    log_file                            log blocks and their content
    base_file | timeline                base files; the files of `.hoodie`
    parquet                             pages, row groups and footers
    avro                                schemas and records, which all above use
    columns                             columns of Arrow, from whichever file

Each room imports only the rooms below it. `schemas/` contains Hudi's own Avro schemas.
"""
