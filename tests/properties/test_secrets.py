"""Secrets among the options of a table are written nowhere, and said nowhere: in no file, log, error or description."""

import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide import Table
from eventide.cli.redaction import Redaction, is_secret
from eventide.options.sections import all_options
from eventide_adapters.storage.fsspec_objects import FsspecObjects
from eventide_adapters.storage.object_storage import ObjectStorage
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.secret_texts import may_be_secret, without_secrets
from eventide_core.config import Options
from eventide_core.errors import ConfigError, EventideError, StorageError

KEYS = (
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.session.token",
    "s3.secret-access-key",
    "s3.session-token",
    "hoodie.aws.secret.key",
    "hdfs.delegation.token",
    "fsspec.account_key",
    "fsspec.sas_token",
    "fsspec.connection_string",
    "fsspec.credential",
    "fs.azure.account.key.lake.dfs.core.windows.net",
    "hoodie.datasource.hive_sync.password",
    "hoodie.metrics.datadog.api.key",
    "javax.net.ssl.keyStorePassword",
    "ssl.passphrase",
    "http.Authorization",
)
SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="*"), min_size=12, max_size=40)


def all_said_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_neither_writes_nor_prints_secrets_of_its_options(
    version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its whole life: every byte that is written, every word that is logged, shown or raised."""
    secrets = {key: f"hidden-{number:02}-{key[-3:]}" for number, key in enumerate(KEYS)}
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    options = {
        **secrets,
        "hoodie.metrics.on": "true",
        "hoodie.metrics.reporter.type": "json_lines",
        "hoodie.metrics.reporter.file.path": str(tmp_path / "metrics.jsonl"),
        "hoodie.clean.commits.retained": "1",
    }
    path = str(tmp_path / "table")
    rows = pa.table({"id": ["a", "b"], "part": ["p", "p"], "ms": [1_790_000_000_000, 1_790_000_001_000]})
    table = Table.create(
        path, schema=rows.schema, record_key="id", partition="part", ordering="ms", event_time="ms", version=version,
        options=options,
    )  # fmt: skip
    for _ in range(3):
        table.upsert(rows)
    plan = table.plan_compaction(1_790_000_000_500)
    said += [repr(table), plan.explain(), json.dumps(plan.to_json()), repr(plan)]
    table.compact(plan)
    table.upsert(rows)
    said += [repr(table.clean(1)), repr(table.describe()), repr(table.freshness()), repr(table.verify(deep=True))]
    said.append(repr(table.report(tmp_path / "report.html")))
    table.publish_metrics()
    for attempt in refusals(path, options):
        with pytest.raises(EventideError) as refused:
            attempt()
        said.append(all_said_of(refused.value))
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) > 10
    assert (tmp_path / "metrics.jsonl") in written
    everything = b"\0".join([*(file.read_bytes() for file in written), *(str(file).encode() for file in written)])
    out, err = capfd.readouterr()
    words = "\0".join([*said, out, err, caplog.text])
    for key, secret in secrets.items():
        assert secret.encode() not in everything, f"{key} is written"
        assert secret not in words, f"{key} is said"


def refusals(path: str, options: dict[str, str]) -> tuple[Callable[[], object], ...]:
    return (
        lambda: Table.open(f"{path}-absent", options).snapshot().to_arrow(),
        lambda: Table.open(path, options).plan_compaction("yesterday"),
        lambda: Table.open(path, options).execute("20200101000000000"),
        lambda: Table.open(path, options).snapshot().to_arrow(columns=["nothing"]),
        lambda: Table.open("ftp://host/table", options),
        lambda: Table.open("s3://bucket/table", {**options, "s3.request-timeout": "soon"}),
        lambda: Table.open("hdfs://namenode/table", {**options, "hdfs.request-timeout": "soon"}),
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(KEYS), SECRETS, st.sampled_from(["{}", "key {} refused", "https://u:{}@host/x", "<{}&sig={}>"]))
def test_no_text_that_is_shown_holds_a_secret_of_an_option(key: str, secret: str, text: str) -> None:
    quoted = text.replace("{}", secret)
    assert is_secret(key)
    assert secret not in without_secrets(quoted, [secret])
    redaction = Redaction()
    redaction.add({key: secret})
    assert secret not in redaction.clean(quoted)


@pytest.mark.parametrize(
    "key",
    ["hoodie.datasource.write.recordkey.field", "hoodie.table.keygenerator.class", "hoodie.table.recordkey.fields"],
)
def test_names_of_fields_are_no_secrets(key: str) -> None:
    assert not is_secret(key)


def test_every_declared_option_whose_key_looks_like_a_secret_is_one() -> None:
    looks = {name for option in all_options() for name in option.names if may_be_secret(name)}
    assert {name for name in looks if not is_secret(name)} == {
        "fs.s3a.connection.ssl.enabled",
        "hdfs.kerberos.keytab",  # a path
        "hoodie.write.lock.dynamodb.partition_key",
        "hoodie.write.lock.zookeeper.connection_timeout_ms",
        "hoodie.write.lock.zookeeper.lock_key",
    }
    assert {str(option) for option in all_options() if option.secret} <= looks


def test_the_value_of_an_option_that_only_looks_like_a_secret_is_shown() -> None:
    redaction = Redaction()
    redaction.add({"fs.s3a.connection.ssl.enabled": "false", "fs.s3a.secret.key": "hidden-secret"})
    assert redaction.clean("false and hidden-secret") == "false and ***"


class TalkativeStore(MemoryFileSystem):  # type: ignore[misc]
    """Quotes its own settings in every failure, as packages of stores do."""

    protocol = "talkative"
    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.words = json.dumps(options)

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(f"403 for {self.words}")

    cat_file = info = ls = rm_file = pipe_file = _fail


OPERATIONS: dict[str, Callable[[ObjectStorage], object]] = {
    "read": lambda storage: storage.read("file"),
    "read_range": lambda storage: storage.read_range("file", 5, 5),
    "stat": lambda storage: storage.stat("file"),
    "list": lambda storage: storage.list(""),
    "put": lambda storage: storage.put("file", b""),
    "put_if_absent": lambda storage: storage.put_if_absent("file", b""),
    "copy_if_absent": lambda storage: storage.copy_if_absent("file", "copy"),
    "delete": lambda storage: storage.delete("file"),
    "open_input": lambda storage: storage.open_input("file"),
}


@settings(max_examples=20)
@given(SECRETS, st.sampled_from(["account_key", "sas_token", "connection_string", "credential", "token"]))
def test_a_store_that_quotes_its_settings_is_not_heard_in_any_traceback(secret: str, setting: str) -> None:
    """A read that fails asks for the object's size, and that fails, too: the one error stands behind the other."""
    fsspec.register_implementation("talkative", TalkativeStore, clobber=True)
    objects = FsspecObjects("talkative", "lake", ((setting, secret),), allows_unsafe_writes=True)
    storage = ObjectStorage("talkative://lake/trips", "trips/", objects)
    for name, operation in OPERATIONS.items():
        with pytest.raises(StorageError) as failed:
            operation(storage)
        said = all_said_of(failed.value)
        assert secret not in said, name
        assert json.dumps(secret)[1:-1] not in said, name


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://lake/trips", {"fs.s3a.endpoint": "https://user:hidden-word@store:9000"}),
        ("s3://lake/trips", {"s3.endpoint": "user:hidden-word@store:9000"}),
        ("hdfs://lake/trips", {"dfs.namenode.http-address": "user:hidden-word@namenode:9870"}),
        ("hdfs://lake/trips", {"dfs.namenode.http-address.lake.nn1": "user:hidden-word@namenode:9870"}),
        ("webhdfs://user:hidden-word@namenode:9870/trips", {}),
        ("s3://user:hidden-word@lake/trips", {}),
        ("https://lake.blob.core.windows.net/trips?sv=1&sig=hidden-word", {}),
        ("ftp://user:hidden-word@host/trips", {}),
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        open_storage(uri, Options(options))
    assert "hidden-word" not in all_said_of(refused.value)
