"""What log files contain, for the planner: event times, and the histories of keys; no rows. Imports `merge` and below."""
