"""Files that are damaged or of another kind: every reader of sources refuses them with the file's name and a cure."""

import io
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from eventide.sources import csv_batches
from eventide.sources.rows import read_rows
from eventide.sources.schema_file import read_schema
from eventide.sources.source import Dialect, Format, Source
from eventide_core.errors import EventideError
from support.doubles.trickle import Trickle

_TYPES: Final[dict[str, pa.DataType]] = {"id": pa.int64(), "name": pa.string(), "amount": pa.float64()}


def _parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2, 3], "name": ["x", "y", None], "amount": [[1], [], None]}), file)
    return file.getvalue()


_WHOLE: Final = {
    Format.CSV: b'id,name,amount\n1,"a, b",2.5\n2,c,\n3,"d\ne",4\n',
    Format.JSON: b'{"id":1,"name":"a","x":{"y":[1,2]}}\n{"id":2,"name":null,"x":{"y":[]}}\n',
    Format.PARQUET: _parquet(),
}
_LETTERS: Final = {
    Format.CSV: b'",;\n\r\t a1\x00\xff\xfe.-',
    Format.JSON: b'{}[]":,\n\\u01ed truefalsn.-E\x00\xff',
    Format.PARQUET: bytes(range(256)),
}


def _damaged(random_: random.Random, whole: bytes, letters: bytes) -> bytes:
    """Bytes at random, letters of the format at random, or a whole file with some of them."""
    kind = random_.randrange(5)
    if kind == 0:
        return random_.randbytes(random_.randrange(1, 200))
    if kind == 1:
        return bytes(random_.choices(letters, k=random_.randrange(1, 60)))
    if kind == 2:
        changed = bytearray(whole)
        for _ in range(random_.randrange(1, 6)):
            changed[random_.randrange(len(changed))] = random_.choice(letters)
        return bytes(changed)
    begin = random_.randrange(len(whole))
    torn = (
        whole[:begin] + bytes(random_.choices(letters, k=random_.randrange(8))) + whole[begin + random_.randrange(5) :]
    )
    return random_.choice((b"\x1f\x8b", b"\x28\xb5", b"PAR1")) + torn if kind == 3 else torn


def _refuses(read: Callable[[], object], name: str) -> bool:
    """Whether the damage is noticed, in which case the message names the file."""
    said = name
    try:
        read()
    except EventideError as error:
        said = str(error)
    assert name in said
    return said != name


def _check(kind: Format, seeds: range) -> None:
    refused = 0
    for seed in seeds:
        data = _damaged(random.Random(seed), _WHOLE[kind], _LETTERS[kind])
        source = Source(f"x.{kind}", kind, lambda data=data: io.BytesIO(data))  # type: ignore[misc]
        for types in (_TYPES, {}):
            refused += _refuses(lambda: read_rows([source], types.get, Dialect()), source.name)  # noqa: B023
    assert 0.5 < refused / (2 * len(seeds)) < 1, refused


@pytest.mark.parametrize("kind", list(Format))
def test_damaged_bytes_are_read_or_refused_with_words(kind: Format) -> None:
    _check(kind, range(250))


@pytest.mark.broad
@pytest.mark.parametrize("kind", list(Format))
def test_thousands_of_damaged_files_are_read_or_refused_with_words(kind: Format) -> None:
    _check(kind, range(250, 6000))


def test_a_damaged_schema_file_is_refused_with_words(tmp_path: Path) -> None:
    avro = b'{"type":"record","name":"r","fields":[{"name":"id","type":"long"},{"name":"e","type":["null","string"]}]}'
    for seed in range(400):
        whole = (avro, b"id long not null\nname string\n", _WHOLE[Format.PARQUET])[seed % 3]
        path = tmp_path / "x.schema"
        path.write_bytes(_damaged(random.Random(seed), whole, whole))
        _refuses(lambda: read_schema(path), str(path))  # noqa: B023


@pytest.mark.parametrize("block_bytes", [1, 3, 8, 1 << 20])
def test_csv_is_divided_at_the_ends_of_rows(block_bytes: int) -> None:
    """A block at a time gives what Arrow reads in the whole file, or the same refusal."""
    agreed = 0
    for seed in range(300):
        random_ = random.Random(seed)
        cells = ["a", "", '"b, c"', '"d\ne"', '"f""g"', 'h"i', '"j"k', '"\r\n"', '""', '"l"" "']
        lines = [",".join(random_.choices(cells, k=2)) for _ in range(random_.randrange(1, 9))]
        text = ("id,name\n" + random_.choice(["\n", "\r\n", "\r", "\n\n"]).join(lines)).encode()
        source = Source("x.csv", Format.CSV, lambda text=text: Trickle(text, block_bytes))  # type: ignore[misc]
        options = pyarrow.csv.ParseOptions(newlines_in_values=True)
        expected = pyarrow.csv.read_csv(
            io.BytesIO(text + b"\n"),
            parse_options=options,
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={"id": pa.binary(), "name": pa.binary()},
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
        rows = pa.concat_tables(csv_batches.csv_tables(source, Dialect()))
        assert rows.to_pylist() == expected.to_pylist(), text
        agreed += len(rows)
    assert agreed > 1000


def test_a_process_that_read_random_bytes_ends_in_order(tmp_path: Path) -> None:
    """Arrow's threads read ahead, and abort a process whose Python has ended if they still hold a stream of Python."""
    script = (
        "import random, sys\nfrom eventide.sources.rows import read_rows\nfrom eventide.sources.source import *\n"
        "from eventide_core.errors import EventideError\n"
        "for kind in Format:\n    try: read_rows([Source(sys.argv[1], kind, lambda: open(sys.argv[1], 'rb'))], {}.get, "
        "Dialect())\n    except EventideError as error: print(error)\n"
    )
    for seed in range(3):
        path = tmp_path / f"{seed}.csv"
        path.write_bytes(b"id,name\n" + random.Random(seed).randbytes(100_000))
        done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=False)
        assert (done.returncode, done.stderr, done.stdout.count(b"source ")) == (0, b"", 3)
