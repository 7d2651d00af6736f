"""What the job promises its readers."""

from datetime import datetime, timedelta

LATENCY = timedelta(minutes=30)


def promised_event_time(run_at: datetime) -> datetime:
    """Everything that happened before this is to be in the read-optimized table after a run."""
    return run_at - LATENCY
