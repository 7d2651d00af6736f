"""Whatever bytes a table holds: rows or a typed error, never another exception, a large allocation or an endless loop.

Files that real Hudi wrote are changed where it hurts: lengths and counts are replaced by others, bits flip, pieces go, come
twice or elsewhere. Each parser is asked what it is asked in earnest.

EVENTIDE_CAMPAIGN=n tries n times as many, other ones at each run: 10,000 of each parser are EVENTIDE_CAMPAIGN=200.
"""

import resource
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide_adapters.format.slice.log_file.blocks import read_headers
from eventide_core.errors import EventideError
from support.faults.changed_bytes import EDITS, Edit, edited
from support.files.parsers import PARSERS, files_of, in_memory
from support.run.campaign import IS_REPEATED, tries
from support.run.reach import reached

SECONDS_MAX = 20
MEGABYTES_MAX = (
    768  # more address space than any of these files, of some kilobytes, is worth; Arrow reserves much of it
)


class TookTooLongError(BaseException):
    """An endless loop, or near to it. No Exception, lest a decoder takes it for torn bytes."""


@pytest.fixture(autouse=True, scope="module")
def limits() -> Iterator[None]:
    """No more memory than a limit, and no more time for one case than another."""

    def abort(*_: object) -> None:
        raise TookTooLongError

    before = signal.signal(signal.SIGALRM, abort)
    yield
    signal.signal(signal.SIGALRM, before)


@contextmanager
def bounded() -> Iterator[None]:
    limit = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEGABYTES_MAX * 2**20, limit[1]))
    signal.alarm(SECONDS_MAX)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, limit)


@pytest.mark.parametrize("name", PARSERS)
def test_changed_bytes_are_read_or_refused_with_a_typed_error(name: str) -> None:
    ask, sources = PARSERS[name]
    answers: Counter[str] = Counter()

    def put(table: str, path: str, data: bytes) -> None:
        for question in ask(table, path, data):
            try:
                with bounded():
                    question()
            except EventideError as error:
                answers[type(error).__name__] += 1
            else:
                answers["read"] += 1

    for table, path in sources:
        put(table, path, files_of(table)[path])
    assert answers["read"] >= len(sources), "what is not changed can be read"

    @settings(
        max_examples=tries(test=50, proof=50),
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=IS_REPEATED,
        database=None,
    )
    @given(st.sampled_from(sources), EDITS)
    def check(source: tuple[str, str], edits: list[Edit]) -> None:
        table, path = source
        reached(f"hostile {name}, cases")
        put(table, path, edited(files_of(table)[path], edits))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown < MEGABYTES_MAX, f"{grown} MB for a file of some kilobytes"
    reached(f"hostile {name}, answered", answers["read"])
    reached(f"hostile {name}, refused", answers.total() - answers["read"])
    assert len(answers) > 1, f"nothing but {answers}"


def test_a_log_file_whose_blocks_are_read_has_the_headers_that_it_states() -> None:
    """Headers alone, of every prefix of a log: a write may break off anywhere."""
    table, path = PARSERS["log file"][1][0]
    data = files_of(table)[path]
    for end in range(0, len(data), max(1, len(data) // 400)):
        storage = in_memory(path, data[:end])
        blocks = [placed.block for placed in read_headers(storage, path, end)]
        assert [block.offset for block in blocks] == sorted({block.offset for block in blocks})
        assert not blocks or blocks[-1].end == end
