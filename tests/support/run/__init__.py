"""How a run of the tests goes: the size of its campaigns, its parts, what it reached, its processes and downloads."""
