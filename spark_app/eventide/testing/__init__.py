"""The kit for testing your own adapter against eventide. The extra `testing` has pytest and Hypothesis, which it needs.

    state_machine  living_table/          services in any order, with deaths and other engines; `campaign` runs it for long
    compaction_case  schedules/           one compaction; all interleavings of a few processes
    crash_enumeration  invariants         a crash at every write; all invariants at one moment
    histories                             small tables with difficult commits
    inspection/                           what a table shows, and checks of single invariants
    oracle                                what each reader must see
    storage_contract/  merger_contract    the contracts of what you write

Each room knows the rooms below it.
"""
