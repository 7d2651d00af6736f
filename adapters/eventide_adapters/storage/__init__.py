"""The storages of a table's files: the built-in ones, the ones of packages, and what they share.

The names that a package of others imports stay here: `local.LocalStorage`, `object_storage`, `fsspec_objects`.
"""
