"""What a Hudi table is: values parsed from names, bytes and listings, without any I/O."""
