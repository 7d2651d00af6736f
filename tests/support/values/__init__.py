"""What a column can hold, and what becomes of it in plain Python: types, event times, versions, mergers, round trips."""
