"""Real Hudi, started by the tests themselves, as the judge of what eventide reads and writes."""

from support.judge.hudi_judge import HudiJudge, JudgedInstant, JudgeError, hudi_judge

__all__ = ["HudiJudge", "JudgeError", "JudgedInstant", "hudi_judge"]
