"""Lock, heartbeats, failed writes."""

from enum import StrEnum

from eventide_core.config.option import TEXT, WHOLE_NUMBER, Option, choice, one_of, optional, whole_number

SINGLE_WRITER = "SINGLE_WRITER"


class FailedWrites(StrEnum):
    """When writes of dead writers are rolled back: at the next write, by a clean, or only manually."""

    EAGER = "eager"
    LAZY = "lazy"
    NEVER = "never"


LOCK_PROVIDER = optional(
    "hoodie.write.lock.provider",
    TEXT,
    "The table lock, the same for every writer: file-system-based, storage-based (S3), zookeeper-based, "
    "zookeeper-based-implicit, dynamodb-based, dynamodb-based-implicit, hivemetastore-based, Hudi's class of any of "
    "these, or a plug-in MODULE:FACTORY.",
    otherwise="file-system-based",
)
LOCK_PATH = optional(
    "hoodie.write.lock.filesystem.path", TEXT, "The directory of the lock file, inside the table.", otherwise=".hoodie"
)
LOCK_EXPIRE_MINUTES = Option(
    "hoodie.write.lock.filesystem.expire",
    WHOLE_NUMBER,
    0,
    "Minutes after which a lock counts as abandoned; 0 means never. Set the same value for every writer.",
)
LOCK_VALIDITY_SECONDS = Option(
    "hoodie.write.lock.storage.validity.timeout.secs",
    WHOLE_NUMBER,
    300,
    "Seconds for which a storage-based lock holds without renewal; at least ten times the interval below.",
)
LOCK_RENEWAL_SECONDS = Option(
    "hoodie.write.lock.storage.renew.interval.secs",
    WHOLE_NUMBER,
    30,
    "How often the holder renews it, in seconds.",
    aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
)
LOCK_WAIT_MS = Option("hoodie.write.lock.wait_time_ms", WHOLE_NUMBER, 60_000, "How long to wait for the lock.")
LOCK_HEARTBEAT_INTERVAL_MS = Option(
    "hoodie.write.lock.heartbeat_interval_ms",
    whole_number(at_least=1),
    60_000,
    "How often the holder of a lock in the Hive Metastore renews it; well below the metastore's hive.txn.timeout.",
)
ZOOKEEPER_URL = optional("hoodie.write.lock.zookeeper.url", TEXT, "The ZooKeeper servers, such as zk1:2181,zk2:2181.")
ZOOKEEPER_BASE_PATH = optional(
    "hoodie.write.lock.zookeeper.base_path", TEXT, "The path in ZooKeeper below which the locks of tables lie."
)
ZOOKEEPER_LOCK_KEY = optional(
    "hoodie.write.lock.zookeeper.lock_key",
    TEXT,
    "The name of this table's lock below the base path.",
    otherwise="the table's name",
)
ZOOKEEPER_SESSION_TIMEOUT_MS = Option(
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    whole_number(at_least=1),
    60_000,
    "How long after its last sign of life a holder's lock is released.",
)
ZOOKEEPER_CONNECTION_TIMEOUT_MS = Option(
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    whole_number(at_least=1),
    15_000,
    "How long to wait for a connection to ZooKeeper.",
)
DYNAMODB_TABLE = optional(
    "hoodie.write.lock.dynamodb.table",
    TEXT,
    "The DynamoDB table that holds the locks. It is created if it doesn't exist.",
)
DYNAMODB_PARTITION_KEY = optional(
    "hoodie.write.lock.dynamodb.partition_key", TEXT, "The key of this table's lock.", otherwise="the table's name"
)
DYNAMODB_REGION = optional(
    "hoodie.write.lock.dynamodb.region",
    TEXT,
    "The AWS region of the lock table.",
    otherwise="the environment's AWS_REGION, else us-east-1",
)
DYNAMODB_BILLING_MODE = Option(
    "hoodie.write.lock.dynamodb.billing_mode",
    one_of("PAY_PER_REQUEST", "PROVISIONED"),
    "PAY_PER_REQUEST",
    "How a lock table that eventide creates is billed.",
)
DYNAMODB_READ_CAPACITY = Option(
    "hoodie.write.lock.dynamodb.read_capacity",
    whole_number(at_least=1),
    20,
    "The read capacity of a lock table that eventide creates with PROVISIONED billing.",
)
DYNAMODB_WRITE_CAPACITY = Option(
    "hoodie.write.lock.dynamodb.write_capacity",
    whole_number(at_least=1),
    10,
    "The write capacity of a lock table that eventide creates with PROVISIONED billing.",
)
DYNAMODB_CREATION_TIMEOUT_MS = Option(
    "hoodie.write.lock.dynamodb.table_creation_timeout",
    whole_number(at_least=1),
    600_000,
    "Milliseconds to wait for a lock table that eventide creates.",
)
DYNAMODB_ENDPOINT = optional(
    "hoodie.write.lock.dynamodb.endpoint_url",
    TEXT,
    "The URL of the DynamoDB service.",
    otherwise="Amazon's in the region",
)
METASTORE_LOCK_DATABASE = optional(
    "hoodie.write.lock.hivemetastore.database", TEXT, "The database whose table is locked in the Hive Metastore."
)
METASTORE_LOCK_TABLE = optional(
    "hoodie.write.lock.hivemetastore.table", TEXT, "The table that is locked in the Hive Metastore."
)
METASTORE_LOCK_URIS = optional(
    "hoodie.write.lock.hivemetastore.uris",
    TEXT,
    "The addresses of the Hive Metastore, such as thrift://host:9083.",
    otherwise="thrift://localhost:9083",
)
LOCK_BASE_PATH = optional(
    "hoodie.base.path",
    TEXT,
    "The table's path as its other writers write it. The implicit locks derive their names from it.",
    otherwise="the table's URI on S3; required elsewhere",
)
HEARTBEAT_INTERVAL_MS = Option(
    "hoodie.client.heartbeat.interval_in_ms", WHOLE_NUMBER, 60_000, "How often a writer renews its heartbeat."
)
HEARTBEAT_TOLERABLE_MISSES = Option(
    "hoodie.client.heartbeat.tolerable.misses",
    WHOLE_NUMBER,
    2,
    "How many heartbeats a writer may miss before it counts as dead.",
)
PENDING_SERVICE_STALE_MS = Option(
    "eventide.pending.service.stale_ms",
    WHOLE_NUMBER,
    3_600_000,
    "How long a pending clean or rollback of another engine, which keeps no heartbeat, must stand before eventide ends it.",
)
CONCURRENCY_MODE = Option(
    "hoodie.write.concurrency.mode",
    TEXT,
    SINGLE_WRITER,
    "Whether other writers write to the table. Any mode but SINGLE_WRITER, or the lazy policy of failed writes, lets "
    "eventide write beside a pending write without a heartbeat.",
)
FAILED_WRITES = Option(
    "hoodie.cleaner.policy.failed.writes",
    choice(FailedWrites),
    FailedWrites.EAGER,
    "When writes of dead writers are rolled back: by the next write, by a clean, or only by hand.",
    aliases=("hoodie.clean.failed.writes.policy",),
)
