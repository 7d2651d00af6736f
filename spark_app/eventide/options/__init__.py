"""The options of the application, and in `sections` those of all rooms. May import the core and the adapters alone."""
