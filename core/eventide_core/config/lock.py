"""Lock, heartbeats, failed writes."""

from enum import StrEnum

from eventide_core.config.option import TEXT, WHOLE_NUMBER, Option, choice

SINGLE_WRITER = "SINGLE_WRITER"


class FailedWrites(StrEnum):
    """When writes of dead writers are rolled back: at the next write, by a clean, or only manually."""

    EAGER = "eager"
    LAZY = "lazy"
    NEVER = "never"


LOCK_PROVIDER = Option(
    "hoodie.write.lock.provider",
    TEXT,
    None,
    "The table lock: file-system-based, storage-based (S3), Hudi's class of either, or a plug-in MODULE:FACTORY.",
    otherwise="file-system-based",
)
LOCK_PATH = Option(
    "hoodie.write.lock.filesystem.path",
    TEXT,
    None,
    "The directory of the lock file, inside the table.",
    otherwise=".hoodie",
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
LOCK_WAIT_MS = Option(
    "hoodie.write.lock.wait_time_ms",
    WHOLE_NUMBER,
    60_000,
    "How long to wait for the lock.",
)
HEARTBEAT_INTERVAL_MS = Option(
    "hoodie.client.heartbeat.interval_in_ms",
    WHOLE_NUMBER,
    60_000,
    "How often a writer renews its heartbeat.",
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
