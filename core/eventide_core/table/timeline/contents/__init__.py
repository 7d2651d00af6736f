"""What the files of the timeline contain: commits, plans, cleans, rollbacks, savepoints, and their checksums."""
