"""`python resolver.py COORDINATE DIRECTORY EXCLUDED`: downloads a package with Spark's resolver into DIRECTORY/jars.

EXCLUDED are dependencies, `group:artifact` with commas between.
"""

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    coordinate, directory, excluded = sys.argv[1:]
    (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", coordinate)
        .config("spark.jars.excludes", excluded)
        .config("spark.jars.ivy", directory)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
        .stop()
    )
