"""`python resolver.py COORDINATE FOLDER`: downloads a package with Spark's resolver into FOLDER/jars."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    coordinate, folder = sys.argv[1:]
    (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", coordinate)
        # The bundle shades what it needs; these two come with Spark.
        .config("spark.jars.excludes", "org.apache.hive:hive-storage-api,org.slf4j:slf4j-api")
        .config("spark.jars.ivy", folder)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
        .stop()
    )
