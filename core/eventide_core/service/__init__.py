"""Use cases: read through ports, ask an action, write through ports.

    repair                             verifies a table, and runs compactions and rebuilds again
    compaction | maintenance | query   the other use cases
      | verification | write
    rollback                           with which some of them begin
    common                             what all of them stand on

Each room knows the rooms below it.
"""
