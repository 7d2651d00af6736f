"""The jars of Hudi's bundles, by version, and of Delta, so that every run is judged by the same bytes."""

from __future__ import annotations

from support.maven import MavenJar

# The bundle shades what it needs; these two come with Spark.
_FROM_SPARK = ("org.apache.hive:hive-storage-api", "org.slf4j:slf4j-api")

BUNDLES = {
    version: MavenJar(f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{version}", sha256, _FROM_SPARK)
    for version, sha256 in {
        "0.15.0": "aab6ecdb5c65fcd20406b980b31ccec294fae95693de947d5778f0b3fb4e302a",
        "1.0.2": "2c2ab65a11e91265e4b7346f954448c46df52d66fb72f52dad83767b621deae8",
        "1.1.1": "5470908f0d26897fb6e0768790e6c75e3d05d2fa013f7d81c8f90c74056d1604",
        "1.2.0": "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676",
    }.items()
}

# Delta Lake, which benchmarks/ sets beside eventide; ANTLR comes with Spark.
DELTA = (
    MavenJar(
        "io.delta:delta-spark_2.12:3.3.2",
        "4e92085d5d794cf949c50bb665b91384857cad58680c2d0bfc9c7ad353e98e85",
        ("io.delta:delta-storage", "org.antlr:antlr4-runtime"),
    ),
    MavenJar("io.delta:delta-storage:3.3.2", "c096975a2ca97ccc9b4005aa5cce16c9ac3903139d340da6665b66ace67d7c36"),
)
