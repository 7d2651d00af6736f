"""Lives of tables on which eventide and stock Hudi take turns, each life drawn from a seed.

`kinds` are the tables, `moves` what may be done to one, `choice` draws the next move, `life` is one table and what its
oracle knows, `campaign` lives many at once and holds every reader to the oracle after each turn.
"""
