"""What goes wrong: damaged bytes, files and settings, hostile paths, lost answers, writers that die or stop."""
