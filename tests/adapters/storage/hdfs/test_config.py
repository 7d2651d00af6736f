"""The address of a NameNode, from options, Spark's settings, or Hadoop's own files."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from eventide_adapters.storage.hdfs.config import HdfsConfig, NativeConfig
from eventide_adapters.storage.hdfs.storage import HdfsStorage
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import ConfigError, StorageError
from support.servers.server_process import free_ports

HIGHLY_AVAILABLE = {
    "dfs.namenode.http-address.lake.nn1": "one:9870",
    "dfs.namenode.http-address.lake.nn2": "two:9870",
    "dfs.namenode.http-address.other.nn1": "three:9870",
}
OF_HADOOP = {
    "dfs.nameservices": "lake",
    "dfs.ha.namenodes.lake": "nn2, nn1,nn3",
    "dfs.namenode.rpc-address.lake.nn1": "one:8020",
    "dfs.namenode.rpc-address.lake.nn2": "two:8020",
    "dfs.namenode.http-address.lake.nn2": "two:1",
    "dfs.namenode.http-address.lake.nn3": "three:1",
    "dfs.namenode.http-address.lake.gone": "gone:1",
}


@pytest.fixture(autouse=True)
def no_hadoop_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)


@pytest.mark.parametrize(
    ("scheme", "authority", "options", "addresses"),
    [
        ("hdfs", "nn:8020", {}, ("http://nn:9870",)),
        ("hdfs", "nn:8020", {"dfs.http.policy": "HTTPS_ONLY"}, ("https://nn:9871",)),
        ("hdfs", "nn", {"dfs.namenode.http-address": "web:1"}, ("http://web:1",)),
        ("hdfs", "nn", {"dfs.namenode.http-address": "one:1, two:1"}, ("http://one:1", "http://two:1")),
        ("hdfs", "nn", {"spark.hadoop.dfs.namenode.http-address": "web:1"}, ("http://web:1",)),
        ("hdfs", "lake", HIGHLY_AVAILABLE, ("http://one:9870", "http://two:9870")),
        ("hdfs", "lake", OF_HADOOP, ("http://two:1", "http://one:9870", "http://three:1")),
        ("webhdfs", "web:1", HIGHLY_AVAILABLE, ("http://web:1",)),
        ("swebhdfs", "web:1", {}, ("https://web:1",)),
    ],
)
def test_the_name_nodes_web_addresses(
    scheme: str, authority: str, options: dict[str, str], addresses: tuple[str, ...]
) -> None:
    assert HdfsConfig.of(scheme, authority, Options(options)).addresses == addresses


def test_a_name_node_without_an_address_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'nn3', which has no address: set dfs\.namenode\.http-address\.lake\.nn3"):
        HdfsConfig.of("hdfs", "lake", Options({**OF_HADOOP, "dfs.namenode.http-address.lake.nn3": ""}))


def test_hadoops_own_file_is_read_and_an_option_goes_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("HADOOP_USER_NAME", "from environment")
    assert HdfsConfig.of("hdfs", "nn", Options({})).addresses == ("http://nn:9870",)
    key = "dfs.namenode.http-address"
    (tmp_path / "hdfs-site.xml").write_text(
        f"<configuration><property><name>{key}</name><value>web:1</value></property></configuration>"
    )
    assert HdfsConfig.of("hdfs", "nn", Options({})).addresses == ("http://web:1",)
    assert HdfsConfig.of("hdfs", "nn", Options({key: "other:1"})).addresses == ("http://other:1",)
    assert HdfsConfig.of("hdfs", "nn", Options({})).user == "from environment"
    assert HdfsConfig.of("hdfs", "nn", Options({"hadoop.user.name": "lake"})).user == "lake"
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigError, match=r"hdfs-site\.xml"):
        HdfsConfig.of("hdfs", "nn", Options({}))


@pytest.mark.usefixtures("short_pauses")
def test_a_delegation_token_is_shown_nowhere() -> None:
    (port,) = free_ports(1)
    options = Options({"hdfs.delegation.token": "a-token", "dfs.namenode.http-address": f"localhost:{port}"})
    storage = open_storage("hdfs://nn:8020/lake/trips", options)
    assert isinstance(storage, HdfsStorage)
    with pytest.raises(StorageError, match="cannot read 'file' in hdfs://nn:8020/lake/trips") as failure:
        storage.read("file")
    shown = (str(failure.value), repr(failure.value.__cause__), repr(storage), storage.root, repr(options))
    assert not any("a-token" in text for text in shown)


def test_a_request_without_time_is_refused() -> None:
    with pytest.raises(ConfigError, match="request-timeout"):
        HdfsConfig.of("hdfs", "nn", Options({"hdfs.request-timeout": "0"}))


BY_LIBHDFS = {"hdfs.bytes": "libhdfs", "hadoop.user.name": "lake"}


@pytest.mark.parametrize(
    ("authority", "options", "native"),
    [
        ("nn:9000", {}, ("nn", 9000, ())),
        ("nn", {"spark.hadoop.dfs.replication": "2", "fs.defaultFS": "x"}, ("nn", 0, (("dfs.replication", "2"),))),
        ("lake", HIGHLY_AVAILABLE, ("lake", 0, tuple(sorted(HIGHLY_AVAILABLE.items())))),
    ],
)
def test_libhdfs_is_given_the_name_node_and_hadoops_settings(
    authority: str, options: dict[str, str], native: tuple[str, int, tuple[tuple[str, str], ...]]
) -> None:
    host, port, settings = native
    config = HdfsConfig.of("hdfs", authority, Options(options | BY_LIBHDFS))
    assert config.native == NativeConfig(host, port, "lake", settings)
    assert pickle.loads(pickle.dumps(config)) == config
    assert HdfsConfig.of("hdfs", authority, Options(options)).native is None


@pytest.mark.parametrize("uri", ["webhdfs://web:9870/lake", "swebhdfs://web:9871/lake", "hdfs://nn:port/lake"])
def test_libhdfs_needs_an_address_for_hadoops_clients(uri: str) -> None:
    with pytest.raises(ConfigError, match="hdfs://HOST:PORT"):
        open_storage(uri, Options(BY_LIBHDFS))


def test_bytes_by_anything_else_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"hdfs\.bytes='native' is not one of webhdfs, libhdfs"):
        open_storage("hdfs://nn:8020/lake", Options({"hdfs.bytes": "native"}))


OPENED = """
import sys
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import ConfigError
try:
    open_storage("hdfs://nn:8020/lake/trips", Options({"hdfs.bytes": "libhdfs"}))
except ConfigError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize(
    ("class_path", "said"),
    [
        ("", "CLASSPATH, which names Hadoop's jars, is not set; set CLASSPATH to all"),
        ("none.jar", "Unable to load lib"),
    ],
)
def test_a_missing_part_of_libhdfs_is_named_when_the_table_is_opened(
    class_path: str, said: str, tmp_path: Path
) -> None:
    """In a process of its own: pyarrow looks for the library once."""
    environment = {key: value for key, value in os.environ.items() if key not in ("HADOOP_HOME", "LD_LIBRARY_PATH")}
    environment |= {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "ARROW_LIBHDFS_DIR": str(tmp_path),
        "CLASSPATH": class_path,
    }
    done = subprocess.run([sys.executable, "-c", OPENED], env=environment, capture_output=True, text=True, check=False)
    assert said in done.stderr
    assert "or use hdfs.bytes=webhdfs" in done.stderr
    assert "Traceback" not in done.stderr
