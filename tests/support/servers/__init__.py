"""Real servers that tests start: on loopback, one command each, and always stopped with the tests."""
