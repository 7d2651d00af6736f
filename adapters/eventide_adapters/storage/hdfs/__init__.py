"""HDFS, by WebHDFS or libhdfs, with Kerberos. Imports only what storages share."""
