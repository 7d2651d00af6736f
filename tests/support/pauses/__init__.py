"""A process that stands still while others go on: its verbs, the schedules of it, and the rules that keep it harmless."""
