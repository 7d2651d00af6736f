import subprocess
import sys
from pathlib import Path

import pytest

from eventide_adapters.extras import install_command
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.secret_texts import without_secrets
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from support.run.child_processes import environment

NONE = Options({})


@pytest.mark.parametrize("prefix", ["", "file:", "file://", "file://localhost"])
def test_a_path_or_file_uri_is_a_directory(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "a table 100%20").mkdir()
    (tmp_path / "a table 100%20" / "file").write_bytes(b"data")
    storage = open_storage(f"{prefix}{tmp_path}/a table 100%20/", NONE)
    assert isinstance(storage, LocalStorage)
    assert storage.read("file") == b"data"
    assert open_storage(storage.root, NONE).root == storage.root


def test_a_relative_path_is_taken_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_storage("lake/trips", NONE).root == f"file://{tmp_path}/lake/trips"


@pytest.mark.parametrize(
    ("uri", "cure"),
    [
        ("s3:/lake/trips", "s3://lake/trips"),
        ("S3A:lake/trips", "S3A://lake/trips"),
        ("hdfs:/lake/trips", "hdfs://lake/trips"),
        ("gs:/lake/trips", "gs://lake/trips"),
        ("file:trips", "file:/lake/trips"),
        ("file:./trips", "file:/lake/trips"),
    ],
)
def test_a_uri_without_all_of_its_slashes_is_no_local_directory(uri: str, cure: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_storage(uri, NONE)
    assert (
        str(caught.value)
        == f"the table {uri!r} isn't a URI: write {cure}, or ./{uri} for a local directory of that name"
    )
    assert isinstance(open_storage(f"./{uri}", NONE), LocalStorage)


def test_a_name_in_memory_is_that_storage() -> None:
    storage = open_storage("memory://trips/", NONE)
    assert isinstance(storage, MemoryStorage)
    storage.put("file", b"data")
    assert open_storage("memory://trips", NONE).read("file") == b"data"


@pytest.mark.parametrize("uri", ["webdav://host/trips", "ftp://host/trips", "file://host/trips", "memory://"])
def test_an_unknown_scheme_is_answered_with_the_known_ones(uri: str) -> None:
    with pytest.raises(ConfigError, match=r"file:///lake/trips.*memory://trips") as answer:
        open_storage(uri, NONE)
    assert uri in str(answer.value)


@pytest.mark.parametrize(
    "uri", ["file://host/trips", "memory://", "s3://", "s3a:///trips", "hdfs://", "gs://", "abfs://x"]
)
def test_a_known_scheme_without_a_full_address_is_not_called_unknown(uri: str) -> None:
    with pytest.raises(ConfigError, match=r"has no full address after .*://: eventide opens") as answer:
        open_storage(uri, NONE)
    assert "install a package" not in str(answer.value)
    assert without_secrets(str(answer.value), ()) == str(answer.value), "the forms of URIs are shown unmasked"


def test_a_view_of_hadoops_clients_is_refused_with_what_to_open() -> None:
    with pytest.raises(ConfigError, match=r"open the table by the hdfs:// URI .* fs\.viewfs\.mounttable"):
        open_storage("viewfs://cluster/lake/trips", NONE)


@pytest.mark.parametrize("uri", ["", "  "])
def test_no_path_is_no_table(uri: str) -> None:
    with pytest.raises(ConfigError, match="no path"):
        open_storage(uri, NONE)


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_file_is_no_table(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "rows of march.csv").write_text("id,at")
    with pytest.raises(ConfigError, match=r"rows of march\.csv' is a file: name the directory that has \.hoodie"):
        open_storage(f"{prefix}{tmp_path}/rows of march.csv", NONE)


WITHOUT_S3FS = """
import sys
sys.modules["s3fs"] = None
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.secret_texts import without_secrets
from eventide_core.config import Options
from eventide_core.errors import ConfigError
open_storage("/lake/trips", Options({}))
open_storage("hdfs://namenode:8020/lake/trips", Options({}))
try:
    open_storage("s3://lake/trips", Options({}))
except ConfigError as error:
    sys.exit(str(error))
"""


def test_only_a_table_on_s3_needs_its_package_and_the_error_names_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_S3FS], env=environment(), capture_output=True, text=True, check=False
    )
    assert f"s3fs: run `{install_command('s3')}`" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("uri", ["s3://key:hidden@lake/trips", "hdfs://lake:hidden@namenode/trips"])
def test_a_secret_in_the_uri_is_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(ConfigError, match="before `@`") as refused:
        open_storage(uri, NONE)
    assert "hidden" not in str(refused.value)


def test_a_place_where_no_directory_can_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    for place, said in (
        ("file/table", "file is a file, and no directory"),
        ("dangling", "dangling is a link that leads nowhere"),
        ("dangling/table", "dangling is a link that leads nowhere"),
        ("loop", "loop is a link that leads nowhere"),
    ):
        with pytest.raises(ConfigError, match=said):
            open_storage(str(tmp_path / place), Options({}))


def test_a_home_directory_that_no_shell_resolved_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/ada")
    with pytest.raises(ConfigError, match=r"'~/lake/trips' begins with ~, .* write /users/ada/lake/trips$"):
        open_storage("~/lake/trips", Options({}))


def test_the_scheme_of_a_file_may_have_capitals(tmp_path: Path) -> None:
    assert open_storage(f"FILE://{tmp_path}", Options({})).root == open_storage(str(tmp_path), Options({})).root
