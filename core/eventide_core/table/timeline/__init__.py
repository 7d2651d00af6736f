"""Instants, the timeline, and how it says what counts; `contents` are its files."""
