"""A POSIX file system: a table in a directory, whose links lead nobody out of it. Imports only what storages share."""

from eventide_adapters.storage.local.storage import LocalStorage as LocalStorage
