"""The job's own rules. That the folder is called `core` is its own affair: eventide's packages have names of their own."""
