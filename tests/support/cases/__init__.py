"""Scenes that tests of several places share, each with what has to hold in it."""
