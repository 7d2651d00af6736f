"""What tests run in a process of its own: a part of a pipeline, a client, a driver, a browser, a limit of memory."""
