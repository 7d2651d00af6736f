"""Adapters are found by name: the built-in ones as pyproject.toml declares them, and installed packages' as theirs do."""

import pickle
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.catalog import CATALOGS, catalogs_of, tool_of
from eventide_adapters.arrival.open import SOURCES
from eventide_adapters.entry_points import Adapter, Adapters
from eventide_adapters.lock.open import LOCKS, open_lock
from eventide_adapters.metrics.open import METRICS, open_sink
from eventide_adapters.storage.memory import MemoryStorage
from eventide_adapters.storage.open import STORAGES, open_storage
from eventide_core.config import LOCK_PROVIDER, SYNC_TOOLS, Options
from eventide_core.errors import ConfigError, RefusedError
from eventide_core.ports import Storage, VersionedFiles
from support.doubles.clocks import StoppedClock

ROOT = Path(__file__).parents[2]
OPTIONS = Options({})
KINDS = (STORAGES, LOCKS, CATALOGS, SOURCES, METRICS)


CODE = '''
from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.storage.memory import MemoryStorage


class Store(MemoryStorage):
    root = "acme://trips"

    def __reduce__(self):
        return type(self), ("acme://trips",)


class Forgetful(Store):
    """Ignores whether the name is taken."""

    def put_if_absent(self, path, data):
        self.put(path, data)
        return True


class Plain:
    pass


class Sink:
    def __init__(self, options):
        self.options = options


def store(uri, options):
    return Store(uri)


def forgetful(uri, options):
    return Forgetful(uri)


def plain(uri, options):
    return Plain()


def failing(uri, options):
    raise KeyError(f"no token {options.values['acme.token']}")


def lock(storage, options, clock, owner):
    return FileSystemBasedLock(storage, options, clock, owner)


def catalog(options, engine):
    return "a connection"
'''
POINTS = {
    "eventide.storages": {
        "acme": "acme_store:store",
        "forgetful": "acme_store:forgetful",
        "plain": "acme_store:plain",
        "failing": "acme_store:failing",
        "gone": "acme_store:gone",
        "s3": "acme_store:store",
    },
    "eventide.locks": {"org.acme.LockProvider": "acme_store:lock"},
    "eventide.catalogs": {"acme": "acme_store:catalog"},
    "eventide.metrics": {"acme": "acme_store:Sink"},
}


def install(directory: Path, package: str = "acme-store") -> None:
    """What an installer leaves: the module, and the metadata of the package."""
    (directory / "acme_store.py").write_text(CODE)
    metadata = directory / f"{package.replace('-', '_')}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {factory}\n" for name, factory in points.items())
        for group, points in POINTS.items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(groups))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_store", raising=False)
    return tmp_path


def test_pyproject_declares_each_built_in_adapter_as_the_code_does() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert declared == {kind.group: dict(kind.built_in) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.group)
def test_each_built_in_adapter_can_be_loaded(kind: Adapters) -> None:
    for name, factory in kind.built_in.items():
        adapter = kind.find(name)
        assert adapter is not None
        assert adapter == Adapter(name, factory)
        assert callable(adapter.load())


def test_a_built_in_name_needs_no_metadata_of_packages() -> None:
    code = (
        "import sys; from eventide_adapters.storage.open import open_storage; from eventide_core.config import Options; "
        "open_storage('/lake', Options({})); open_storage('memory://x', Options({})); "
        "sys.exit('importlib.metadata' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.usefixtures("installed")
def test_a_table_lives_in_the_storage_of_a_package() -> None:
    uri = "acme://trips"
    rows = pa.table({"id": ["a", "b"], "at": [1, 2]})
    table = Table.create(uri, schema=rows.schema, record_key="id", event_time="at")
    table.upsert(rows)
    assert Table.open(uri).snapshot().to_arrow().num_rows == 2
    storage = open_storage(uri, OPTIONS)
    assert isinstance(storage, VersionedFiles)
    assert storage.list(".hoodie/.eventide_temp") == ()  # the trial is cleaned up
    with open_lock("org.acme.LockProvider", storage, OPTIONS, StoppedClock(), "us").acquire():
        assert storage.stat(".hoodie/lock") is not None
    copy: Storage = pickle.loads(pickle.dumps(storage))
    assert (copy.root, copy.list("")) == (storage.root, storage.list(""))


@pytest.mark.usefixtures("installed")
def test_a_storage_that_breaks_the_contract_is_refused_before_the_first_write() -> None:
    storage = open_storage("forgetful://trips", OPTIONS)
    assert storage.list("") == ()
    writes: tuple[Callable[[], object], ...] = (
        lambda: storage.put("file", b""),
        lambda: storage.put_if_absent("file", b""),
        lambda: storage.open_output("file"),
    )
    for write in writes:
        with pytest.raises(
            RefusedError, match=r"acme-store 1\.2.*'exclusive create': a second create of a name succeeded"
        ):
            write()
    assert storage.list("") == ()


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("plain://trips", r"acme-store 1\.2 declares plain:// as acme_store:plain, which returned a Plain instead"),
        ("failing://trips", r"acme-store 1\.2 cannot open 'failing://trips': KeyError: 'no token \*\*\*'"),
        ("gone://trips", r"acme-store 1\.2 declares gone as acme_store:gone, which cannot be loaded: AttributeError"),
        (
            "other://trips",
            r"unknown scheme.*memory://trips, and with the installed packages acme://, .*eventide\.storages",
        ),
        ("acme://user:hidden@trips", "before `@`"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_what_a_package_does_wrong_names_the_package(uri: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        open_storage(uri, Options({"acme.token": "verysecret1"}))


def test_a_package_replaces_no_built_in_adapter(installed: Path) -> None:
    assert STORAGES.find("s3") == Adapter("s3", STORAGES.built_in["s3"])
    install(installed, "other-store")
    with pytest.raises(ConfigError, match=r"remove all of \['acme-store 1\.2', 'other-store 1\.2'\] but one"):
        open_storage("acme://trips", OPTIONS)


@pytest.mark.usefixtures("installed")
def test_catalogs_and_metrics_of_packages_are_found_by_name() -> None:
    assert catalogs_of(Options({SYNC_TOOLS: "HiveSyncTool,acme"})) == ("hive", "acme")
    assert tool_of("acme") == "acme"
    found = CATALOGS.find("acme")
    assert found is not None
    assert found.load()(OPTIONS, None) == "a connection"
    options = Options({"hoodie.metrics.on": "true", "hoodie.metrics.reporter.type": "acme"})
    assert type(open_sink(options)).__name__ == "Sink"


def test_names_of_nobody_are_refused_with_how_to_add_them() -> None:
    with pytest.raises(ConfigError, match=r"catalog 'polaris' is not supported: use hive.*datahub.*eventide\.catalogs"):
        tool_of("polaris")
    with pytest.raises(ConfigError, match=rf"{LOCK_PROVIDER}='org.none.Lock'.*eventide\.locks"):
        open_lock("org.none.Lock", MemoryStorage("locks"), OPTIONS, StoppedClock(), "us")


def test_an_executor_without_the_package_says_which_one_it_lacks(installed: Path) -> None:
    sent = pickle.dumps(open_storage("acme://trips", OPTIONS))
    code = f"import pickle; pickle.loads({sent!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ConfigError: the table's storage needs the package acme-store 1.2, which is not installed" in done.stderr
    path = f"import sys; sys.path.insert(0, {str(installed)!r}); "
    subprocess.run([sys.executable, "-c", path + code], check=True)  # as with --py-files
