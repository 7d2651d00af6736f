"""Real servers that tests start: on loopback, one command each, gone with the tests whatever happens."""
