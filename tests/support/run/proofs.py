"""The parts of `./run proof`, and which of them a change has to pass before it lands.

A part is the proofs of one subject. It has files of tests, and the places in the product whose change can break what they
prove. A file of tests belongs to the first part that names it.

    python -m support.run.proofs pauses archive     the files of these parts
    python -m support.run.proofs touched [BASE [PART...]]
                                                of those that the change since BASE (origin/main) touches
    python -m support.run.proofs ARGS...            ARGS, unchanged
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[3]
CORE, ADAPTERS, APPLICATION = "core/eventide_core/", "adapters/eventide_adapters/", "spark_app/eventide/"
ACTIONS = (
    f"{CORE}service/",
    f"{CORE}access/",
    f"{CORE}table/",
    f"{ADAPTERS}format/timeline/",
    f"{APPLICATION}testing/",
)


@dataclass(frozen=True, slots=True)
class Part:
    """`tests` are patterns of files below `tests/`; `touched_by` are the beginnings of paths in the repository."""

    name: str
    tests: tuple[str, ...]
    touched_by: tuple[str, ...]

    def has(self, path: str) -> bool:
        """Whether a file, by its path in the repository, is one of its tests, unless an earlier part has it."""
        return any(fnmatch(path, f"tests/{pattern}") for pattern in self.tests)


PARTS = (
    Part(
        "storages",
        ("adapters/*", "conformance/test_*hdfs*", "properties/*_on_stores.py"),
        (f"{ADAPTERS}storage/", f"{ADAPTERS}lock/"),
    ),
    Part("pauses", ("properties/test_paused_owners*", "properties/test_stopped_processes*"), ACTIONS),
    Part("exploration", ("properties/test_exploration*", "properties/test_schedules*"), ACTIONS),
    Part("worlds", ("properties/test_simulation*", "properties/test_state_machine*"), ACTIONS),
    Part(
        "crashes",
        (
            "properties/test_*crashes*",
            "properties/test_compaction_*",
            "properties/test_full_disk*",
            "properties/test_plans_of_others*",
            "properties/test_random_kills*",
            "conformance/test_java_client_that_is_killed*",
        ),
        ACTIONS,
    ),
    Part(
        "archive",
        (
            "conformance/test_archiv*",
            "conformance/test_*timeline*",
            "conformance/test_undone*",
            "core/service/maintenance/*",
        ),
        (
            f"{CORE}service/maintenance/",
            f"{CORE}action/archival/",
            f"{CORE}table/timeline/",
            f"{ADAPTERS}format/timeline/",
        ),
    ),
    Part(
        "repairs",
        ("*/test_repairs*", "conformance/test_lost_history*"),
        (
            f"{CORE}service/repair/",
            f"{CORE}service/verification/",
            f"{CORE}action/repair/",
            f"{CORE}action/verification/",
        ),
    ),
    Part(
        "metadata",
        ("conformance/test_*metadata*", "conformance/test_key_lookups*", "core/service/*"),
        (f"{CORE}service/common/metadata_table/", f"{ADAPTERS}format/metadata_table/"),
    ),
    Part(
        "logs",
        (
            "properties/test_flipped*",
            "properties/test_unreadable_values*",
            "conformance/test_*in_logs*",
            "conformance/test_footers*",
            "conformance/test_records_of_all_kinds*",
        ),
        (
            f"{ADAPTERS}format/slice/log_file/",
            f"{ADAPTERS}format/slice/log_content/",
            f"{ADAPTERS}format/encoding/avro/",
        ),
    ),
    Part(
        "values",
        ("properties/*",),
        (f"{ADAPTERS}format/", f"{CORE}action/", f"{CORE}service/write/", f"{CORE}service/query/"),
    ),
    Part("hudi", ("conformance/*",), (f"{CORE}service/", f"{CORE}action/", f"{ADAPTERS}format/")),
    Part("application", ("*",), (APPLICATION,)),
)


def part_of(path: str) -> Part:
    """The part that a file of tests belongs to, by its path in the repository."""
    return next(part for part in PARTS if part.has(path))


def touched_parts(changed: Iterable[str]) -> tuple[Part, ...]:
    """The parts that a change of these files touches: of the product, or of their own tests."""
    paths = tuple(changed)
    of_tests = {part_of(path) for path in paths if path.startswith("tests/")}
    return tuple(part for part in PARTS if part in of_tests or any(path.startswith(part.touched_by) for path in paths))


def _files(parts: Sequence[Part]) -> Iterator[str]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        if part_of(name) in parts:
            yield name


def _changed_since(base: str) -> list[str]:
    command = ["git", "diff", "--name-only", "--merge-base", base]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def arguments(given: Sequence[str]) -> list[str]:
    """What pytest gets for the arguments of `./run proof`."""
    by_name = {part.name: part for part in PARTS}
    if given[:1] == ["touched"]:
        base, names = given[1] if len(given) > 1 else "origin/main", given[2:] or by_name
        return list(_files([part for part in touched_parts(_changed_since(base)) if part.name in names]))
    if given and all(name in by_name for name in given):
        return list(_files([by_name[name] for name in given]))
    return list(given)


if __name__ == "__main__":
    sys.stdout.write("\n".join(arguments(sys.argv[1:])))
