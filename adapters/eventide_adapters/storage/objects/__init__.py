"""The objects of a bucket: the contract that ObjectStorage uses, and the stores of Amazon, Google and Azure.

Imports only what storages share.
"""
