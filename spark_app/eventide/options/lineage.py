"""OpenLineage."""

from eventide_core.config.option import TEXT, optional

OPENLINEAGE_NAMESPACE = optional(
    "eventide.openlineage.namespace",
    TEXT,
    "Each compaction sends OpenLineage events, as a job of this namespace. OpenLineage's own variables state where to.",
    otherwise="no events",
)
