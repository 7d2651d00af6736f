"""Measures the peak memory of a call, as the kernel counts it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Peak:
    """`grown_bytes` is set when the block has ended."""

    grown_bytes: int = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """The peak memory of the process within the block, minus its memory before the block."""
    with open("/proc/self/clear_refs", "w") as counters:
        counters.write("5")  # resets the peak
    before, peak = _status("VmRSS"), Peak()
    try:
        yield peak
    finally:
        peak.grown_bytes = _status("VmHWM") - before


def _status(key: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(f"{key}:"))
