"""Real Hudi, started by the tests themselves, as the judge of what eventide reads and writes."""

from support.judge.hudi_judge import HudiJudge, JudgedInstant, JudgeError

__all__ = ["HudiJudge", "JudgeError", "JudgedInstant"]
