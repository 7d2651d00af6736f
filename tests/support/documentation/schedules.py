"""A stand-in for Airflow that keeps the commands of a DAG, so that tests can run them."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import ModuleType, TracebackType
from typing import Any, Self

import pytest

# Later than anything in the examples, and no T after the clock.
_DATE = str(datetime.now(UTC).date() + timedelta(days=1))
_TEMPLATE = re.compile(r"\{\{.*?\}\}")


@dataclass(slots=True)
class Airflow:
    """Replaces Airflow's modules."""

    waiting: list[str] = field(default_factory=list)

    def install(self, environment: pytest.MonkeyPatch) -> None:
        waiting = self.waiting

        class BashOperator:
            def __init__(self, *, task_id: str, bash_command: str) -> None:
                assert task_id.isidentifier()
                waiting.append(_TEMPLATE.sub(_DATE, bash_command))

            def __rshift__(self, after: Any) -> Any:
                return after

        class Task:
            """An operator or a sensor. The smoke tests run eventide's in a real Airflow."""

            def __init__(self, *, task_id: str, outlets: Sequence[Any] = ()) -> None:
                assert task_id.isidentifier()
                self.outlets = outlets

            def __rshift__(self, after: Any) -> Any:
                return after

        class Dag:
            def __init__(self, dag_id: str, **settings: Any) -> None:
                assert dag_id.isidentifier()
                assert {"schedule", "start_date"} <= set(settings)

            def __enter__(self) -> Self:
                return self

            def __exit__(
                self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
            ) -> None:
                return None

        for name, members in (
            ("airflow", {}),
            ("airflow.sdk", {"DAG": Dag, "BaseOperator": Task, "BaseSensorOperator": Task, "Asset": str}),
            ("airflow.sdk.exceptions", {"AirflowFailException": Exception, "AirflowSkipException": Exception}),
            ("airflow.triggers", {}),
            ("airflow.triggers.base", {"BaseTrigger": object, "TriggerEvent": object}),
            ("airflow.providers", {}),
            ("airflow.providers.standard", {}),
            ("airflow.providers.standard.operators", {}),
            ("airflow.providers.standard.operators.bash", {"BashOperator": BashOperator}),
        ):
            module = ModuleType(name)
            vars(module).update(members)
            environment.setitem(sys.modules, name, module)

    def taken(self) -> Iterator[str]:
        """The commands of the DAGs that were created since, in order."""
        while self.waiting:
            yield self.waiting.pop(0)
