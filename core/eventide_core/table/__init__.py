"""What a Hudi table is: values parsed from names, bytes and listings, without any I/O.

    catalog | settings    what others, and hoodie.properties, say of the table
    timeline              what happened to it
    files                 what it consists of
    records               what these hold

Each room knows the rooms below it.
"""
