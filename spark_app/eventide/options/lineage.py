"""OpenLineage."""

from eventide_core.config.option import TEXT, Option

OPENLINEAGE_NAMESPACE = Option(
    "eventide.openlineage.namespace",
    TEXT,
    None,
    "Each compaction sends OpenLineage events, as a job of this namespace. OpenLineage's own variables state where to.",
    otherwise="no events",
)
