"""What every use case stands on. Imports no other room of the services.

metadata_table    what each action adds to Hudi's metadata table
facts             what the use cases ask of a table
state             what a table is at one moment
transaction       how an action puts, completes and withdraws its files
"""
