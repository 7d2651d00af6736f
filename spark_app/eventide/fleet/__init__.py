"""Many tables in one process, each with its target lag: their settings, their service, and their status.

May import the table and its report, and what these stand on. Nothing but the command line imports it.
"""
