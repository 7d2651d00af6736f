"""Use cases: read through ports, ask an action, write through ports.

    repair                                     verifies a table, and runs compactions and rebuilds again
    compaction | maintenance | query           the other use cases
      | verification | windows | write
    rollback                                   with which some of them begin
    metadata_table                             what each of them adds to Hudi's metadata table
    facts                                      what they ask of a table
    state                                      what a table is at one moment
    transaction                                how an action puts, completes and withdraws its files

Each room knows the rooms below it.
"""
