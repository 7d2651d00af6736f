"""Event-time based partial compaction for Apache Hudi tables."""
