"""The jars of Hudi's bundles, by version, and of Delta, pinned by checksum."""

from support.run.maven import MavenJar

# The bundle shades its dependencies, except for these two, which come with Spark.
_FROM_SPARK = ("org.apache.hive:hive-storage-api", "org.slf4j:slf4j-api")

BUNDLES = {
    version: MavenJar(f"org.apache.hudi:hudi-spark{spark}-bundle_2.12:{version}", sha256, _FROM_SPARK)
    for version, spark, sha256 in (
        ("0.14.0", "3.4", "f80922ef453fed3089d549d5a02d4c3c157f722a8fb3db099dbcc2c3a923c174"),
        ("0.15.0", "3.5", "aab6ecdb5c65fcd20406b980b31ccec294fae95693de947d5778f0b3fb4e302a"),
        ("1.0.2", "3.5", "2c2ab65a11e91265e4b7346f954448c46df52d66fb72f52dad83767b621deae8"),
        ("1.1.1", "3.5", "5470908f0d26897fb6e0768790e6c75e3d05d2fa013f7d81c8f90c74056d1604"),
        ("1.2.0", "3.5", "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676"),
    )
}

# The Java client alone, because the bundle of the same version contains all its dependencies.
_IN_THE_BUNDLE = (
    "org.apache.hudi:hudi-client-common",
    "org.apache.hudi:hudi-common",
    "org.apache.hudi:hudi-hadoop-common",
    "org.apache.hudi:hudi-io",
    "org.apache.hive:hive-storage-api",
    "com.github.ben-manes.caffeine:caffeine",
    "org.slf4j:slf4j-api",
)
JAVA_CLIENTS = {
    version: MavenJar(f"org.apache.hudi:hudi-java-client:{published}", sha256, _IN_THE_BUNDLE)
    for version, published, sha256 in (
        ("0.15.0", "0.15.0", "0ee4a64d94c6c7d97d152755ac7073761d8835d6d5aced6444094208a0b78c04"),
        # Maven Central has no Java client 1.0.2. The previous one runs on 1.0.2's classes.
        ("1.0.2", "1.0.1", "cc411b4b29789e79179889b0699213b89108a03475909c5e76b2bbb500121a7e"),
        ("1.1.1", "1.1.1", "7f9c51225cb4432c2ea7d737bd31f7762c746d1560aadb843772bf549fea582b"),
        ("1.2.0", "1.2.0", "5416eb8f57d179a9ac6e6d2b424420b5dad67f32368521d1499d02df69a1a69a"),
        ("1.2.1", "1.2.1", "c7d44e8d3fd52fded026da6b66f5f135052178e97367223e7b2bb6b2eb5cf008"),
    )
}
"""Hudi's Java client, by the version of the bundle that it runs on, or its own if `CLIENT_RUNS_ON` names that bundle."""

CLIENT_RUNS_ON = {"1.2.1": "1.2.0"}
"""The bundle of a Java client whose own could not be had."""

AWS_LOCK = MavenJar(
    "org.apache.hudi:hudi-aws:0.15.0",
    "d1752b7d30bb567daced46c15613fe7ee63f4b2ddd07c0f50a3bd09cad2c47cc",
    (
        *_IN_THE_BUNDLE,
        "org.apache.hudi:hudi-hadoop-mr",
        "org.apache.hudi:hudi-hive-sync",
        "org.apache.hudi:hudi-java-client",
        "org.apache.hudi:hudi-sync-common",
        "io.dropwizard.metrics:metrics-core",
        "org.apache.parquet:parquet-avro",
        "software.amazon.awssdk:cloudwatch",
        "software.amazon.awssdk:glue",
        "software.amazon.awssdk:sqs",
    ),
)
"""Hudi's lock in DynamoDB, with the AWS libraries that it needs. Maven Central has no later version of this module."""

# Delta Lake, which benchmarks/ compares with eventide. ANTLR comes with Spark.
DELTA = (
    MavenJar(
        "io.delta:delta-spark_2.12:3.3.2",
        "4e92085d5d794cf949c50bb665b91384857cad58680c2d0bfc9c7ad353e98e85",
        ("io.delta:delta-storage", "org.antlr:antlr4-runtime"),
    ),
    MavenJar("io.delta:delta-storage:3.3.2", "c096975a2ca97ccc9b4005aa5cce16c9ac3903139d340da6665b66ace67d7c36"),
)
