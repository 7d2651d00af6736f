"""Runs the command line for `python -m eventide`."""

from eventide.cli import main

if __name__ == "__main__":
    main()
