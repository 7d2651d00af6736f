"""Event-time based partial compaction for Apache Hudi tables."""

from eventide.table import Table

__all__ = ["Table"]
