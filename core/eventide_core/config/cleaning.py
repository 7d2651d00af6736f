"""Cleaning and archiving."""

from eventide_core.config.option import BYTES, FLAG, WHOLE_NUMBER, Option, one_of, whole_number

# At least one of each: a table that retains nothing has no data.
_RETAINED = whole_number(at_least=1)

CLEANING_POLICY = Option(
    "hoodie.clean.policy",
    one_of("KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS", "KEEP_LATEST_BY_HOURS"),
    "KEEP_LATEST_COMMITS",
    "What a clean retains: by commits, by slices of a file group, or by hours.",
    aliases=("hoodie.cleaner.policy",),
)
COMMITS_RETAINED = Option(
    "hoodie.clean.commits.retained",
    _RETAINED,
    10,
    "Commits whose files are retained.",
    aliases=("hoodie.cleaner.commits.retained",),
)
FILE_VERSIONS_RETAINED = Option(
    "hoodie.clean.fileversions.retained",
    _RETAINED,
    3,
    "Slices of a file group that are retained.",
    aliases=("hoodie.cleaner.fileversions.retained",),
)
HOURS_RETAINED = Option(
    "hoodie.clean.hours.retained",
    _RETAINED,
    24,
    "Hours whose files are retained.",
    aliases=("hoodie.cleaner.hours.retained",),
)
ARCHIVE_MIN_COMMITS = Option(
    "hoodie.keep.min.commits", WHOLE_NUMBER, 20, "How many commits archiving leaves on the active timeline."
)
ARCHIVE_MAX_COMMITS = Option(
    "hoodie.keep.max.commits", WHOLE_NUMBER, 30, "Archiving starts above this number of commits."
)
ARCHIVE_BEYOND_SAVEPOINT = Option(
    "hoodie.archive.beyond.savepoint", FLAG, False, "Whether commits after a savepoint are archived too."
)
ARCHIVE_LEVEL_FILES = Option(
    "hoodie.timeline.compaction.batch.size",
    whole_number(at_least=2),
    10,
    "From table version 8 on: when a level has this many files of archived instants, they are merged into one of the next.",
)
ARCHIVE_MERGE = Option(
    "hoodie.archive.merge.enable",
    FLAG,
    True,
    "On table version 6: whether archiving merges small files of archived instants. Hudi's default is false.",
)
ARCHIVE_MERGE_FILES = Option(
    "hoodie.archive.merge.files.batch.size",
    whole_number(at_least=2),
    10,
    "On table version 6: how many small files of archived instants are merged at once.",
)
ARCHIVE_SMALL_FILE_BYTES = Option(
    "hoodie.archive.merge.small.file.limit.bytes",
    BYTES,
    20_971_520,
    "On table version 6: larger files of archived instants are not merged.",
)
