"""Use cases: read through ports, ask an action, write through ports.

    verification | query | write | maintenance | compaction    the use cases themselves
    rollback                                                   which some of them begin with
    facts                                                      what they ask of a table
    state                                                      what a table is at one moment

Each room knows the rooms below it.
"""
