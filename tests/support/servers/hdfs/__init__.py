"""HDFS in its forms: one NameNode or several, with Kerberos, with replicas, behind HttpFS, and by libhdfs."""
