"""What a Hudi table is: values parsed from names, bytes and listings, without any I/O.

    catalog | settings    what catalogs and hoodie.properties state about the table
    timeline              what happened to it
    files                 what it consists of
    records               what these hold
    property_keys         the keys of hoodie.properties

Each room knows the rooms below it.
"""
