"""The main job on real data: late flights, a compaction by event time, and what each query returns."""

from eventide.demo.story import Demo, Step, check_needs, run_demo

__all__ = ["Demo", "Step", "check_needs", "run_demo"]
