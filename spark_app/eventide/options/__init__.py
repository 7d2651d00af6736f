"""The options of the application; `sections` has the options of all layers. Imports only the core and the adapters."""
