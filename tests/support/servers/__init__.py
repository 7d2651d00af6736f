"""Real servers that tests start: on loopback, one command each, always stopped with the tests."""
