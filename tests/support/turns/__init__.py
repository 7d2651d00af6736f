"""Lives of tables on which eventide and stock Hudi take turns. Each life is drawn from a seed.

`kinds` are the tables, `moves` the possible actions, `choice` draws the next move, `life` is one table with its oracle,
and `campaign` runs many lives at once and compares every reader with the oracle after each turn.
"""
