"""Real HDFS that requires Kerberos, on two NameNodes that fail over."""

import io
import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Mapping
from http.client import HTTPResponse, HTTPSConnection
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from eventide.testing.storage_contract import BehindContract, StorageCase, StorageContract, SymbolicLinkContract
from eventide_adapters.storage.hdfs.config import HdfsConfig
from eventide_adapters.storage.hdfs.storage import HdfsStorage
from eventide_adapters.storage.hdfs.webhdfs import WebHdfs
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import StorageAccessError
from eventide_core.table.timeline.contents.plans import LinkMode
from support.pasts.life import TableLife
from support.servers.hdfs.kdc import REALM, USER
from support.servers.hdfs.native import NativeHdfs
from support.servers.hdfs.secured import SecuredHdfs
from support.tables.backends import Backend


@pytest.fixture(autouse=True)
def no_ticket(secured_hdfs: SecuredHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("KRB5_CONFIG", str(secured_hdfs.kdc.settings))
    monkeypatch.setenv("SSL_CERT_FILE", str(secured_hdfs.authority))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/tickets")


def storage_with(options: Mapping[str, str]) -> HdfsStorage:
    storage = open_storage(f"hdfs://lake/lake/{uuid.uuid4().hex}", Options(options))
    assert isinstance(storage, HdfsStorage)
    return storage


def get_tickets(server: SecuredHdfs, *words: str) -> None:
    subprocess.run(["kinit", *words, "-k", "-t", str(server.kdc.user), USER], check=True, capture_output=True)


def client(options: Mapping[str, str]) -> WebHdfs:
    return WebHdfs(HdfsConfig.of("hdfs", "lake", Options(options)))


@pytest.mark.broad
class TestSecuredHdfs(StorageContract, SymbolicLinkContract, BehindContract):
    rounds = 1

    @pytest.fixture
    def case(self, secured_hdfs: SecuredHdfs) -> StorageCase:
        directory, web = f"/lake/{uuid.uuid4().hex}", client(secured_hdfs.options)

        def write_behind(path: str, data: bytes) -> None:
            web.write(f"{directory}/{path}", io.BytesIO(data), len(data))

        return StorageCase(
            open_storage(f"hdfs://lake{directory}", Options(secured_hdfs.options)),
            lambda path: web.read(f"{directory}/{path}"),
            write_behind,
        )


@pytest.mark.broad
def test_a_ticket_of_the_cache_is_enough_and_hadoops_own_file_names_the_name_nodes(
    secured_hdfs: SecuredHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_tickets(secured_hdfs)
    secured_hdfs.write_client_settings(tmp_path)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert storage_with({}).put_if_absent("file", b"data")


@pytest.mark.broad
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, ("no ticket of the ticket cache's principal", "No Kerberos credentials available")),
        ({"hdfs.kerberos.principal": f"other@{REALM}"}, (f"of other@{REALM} in the keytab",)),
        ({"hdfs.kerberos.principal": "lake@NOBODY.TEST"}, ("lake@NOBODY.TEST", "realm")),
        ({"hdfs.kerberos.principal": "lake@ELSEWHERE.TEST"}, ("lake@ELSEWHERE.TEST", "realm")),
        ({"hdfs.kerberos.keytab": "/no/such.keytab"}, ("in the keytab /no/such.keytab",)),
        ({"hdfs.delegation.token": "no-token"}, ("refused the delegation token",)),
    ],
    ids=["nothing", "principal", "no KDC", "unknown realm", "keytab", "token"],
)
def test_without_a_ticket_one_line_names_who_where_and_the_cure(
    options: dict[str, str], said: tuple[str, ...], secured_hdfs: SecuredHdfs
) -> None:
    with_keytab = {"hdfs.kerberos.keytab": str(secured_hdfs.kdc.user)} if "hdfs.kerberos.principal" in options else {}
    storage = storage_with({**secured_hdfs.addresses, **with_keytab, **options})
    for act in (lambda: storage.put("file", b""), lambda: storage.read("file"), lambda: storage.capabilities):
        with pytest.raises(StorageAccessError) as failure:
            act()
        text = str(failure.value)
        assert all(part in text for part in (*said, "https://localhost:", "run `kinit`", "KDC"))
        assert "\n" not in text
        assert "no-token" not in text
        assert failure.value.exit_code == 2


@pytest.mark.broad
def test_a_certificate_that_nobody_here_trusts_is_wrong_input(
    secured_hdfs: SecuredHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    storage = storage_with(secured_hdfs.options)
    with pytest.raises(StorageAccessError, match=r"localhost:\d+: its certificate is not trusted .*SSL_CERT_FILE"):
        storage.put_if_absent("file", b"data")


@pytest.mark.broad
def test_a_run_outlives_its_ticket_and_its_token(secured_hdfs: SecuredHdfs) -> None:
    """The ticket is destroyed: Kerberos accepts an expired one for five minutes more."""
    get_tickets(secured_hdfs)
    storage = storage_with(secured_hdfs.addresses)
    assert storage.put_if_absent("file", b"data")
    subprocess.run(["kdestroy"], check=True)
    assert storage.read("file") == b"data"  # by the token
    cancel_token(storage, secured_hdfs)
    with pytest.raises(StorageAccessError, match=r"refused the delegation token .*No Kerberos credentials available"):
        storage.read("file")
    get_tickets(secured_hdfs)
    assert storage.read("file") == b"data"


@pytest.mark.broad
def test_nobody_reads_what_the_observer_does_not_know_yet(secured_hdfs: SecuredHdfs) -> None:
    storage = storage_with(secured_hdfs.options)
    assert storage.put_if_absent("file", b"data")
    token = storage._web.login.token
    assert token is not None
    secured_hdfs.update_observer()  # it knows the token now, and answers
    assert storage.put_if_absent("later", b"data")
    another = open_storage(storage.root, Options({**secured_hdfs.addresses, "hdfs.delegation.token": token}))
    assert {"file", "later"} <= {entry.path for entry in another.list("")}
    assert another.read("later") == b"data"


BY_LIBHDFS = """
import sys
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.hdfs.webhdfs import WebHdfs
from eventide_core.config import Options

def refuse(*_):
    raise AssertionError("these bytes went by WebHDFS")

WebHdfs.read = WebHdfs.write = refuse
storage = open_storage(sys.argv[1], Options({"hdfs.bytes": "libhdfs"}))
assert storage.put_if_absent("file", b"data")
print(storage.read("file").decode())
"""


@pytest.mark.broad
def test_hadoops_own_client_moves_the_bytes_with_the_ticket_of_the_cache(
    secured_hdfs: SecuredHdfs, native_hdfs: NativeHdfs, tmp_path: Path
) -> None:
    get_tickets(secured_hdfs)
    secured_hdfs.write_client_settings(tmp_path)
    of_java = native_hdfs.environment
    done = subprocess.run(
        [sys.executable, "-c", BY_LIBHDFS, f"hdfs://lake/lake/{uuid.uuid4().hex}"],
        env={
            **os.environ,
            **of_java,
            "CLASSPATH": os.pathsep.join([str(tmp_path), of_java["CLASSPATH"]]),
            "HADOOP_CONF_DIR": str(tmp_path),
            "LIBHDFS_OPTS": f"{of_java['LIBHDFS_OPTS']} -Djava.security.krb5.conf={secured_hdfs.kdc.settings}",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "data"


def cancel_token(storage: HdfsStorage, server: SecuredHdfs) -> None:
    """What the NameNode does with a token whose time is over."""
    token = storage._web.login.token
    assert token is not None
    client(server.options).call("PUT", "CANCELDELEGATIONTOKEN", "/", token=token)


@pytest.mark.broad
def test_an_executor_needs_no_ticket_and_a_driver_replaces_a_token_that_is_over(
    secured_hdfs: SecuredHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_tickets(secured_hdfs)
    driver = storage_with(secured_hdfs.addresses)
    assert driver.put_if_absent("file", b"data")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("KRB5CCNAME", "FILE:/no/tickets")
        executor = pickle.loads(pickle.dumps(driver))
        assert executor.put_if_absent("other", b"data")
        secured_hdfs.fail_over()
        assert executor.read("file") == b"data"
        cancel_token(driver, secured_hdfs)
        with pytest.raises(StorageAccessError, match="refused the delegation token"):
            executor.read("file")
    assert driver.read("other") == b"data"
    token = driver._web.login.token
    assert token is not None
    assert token not in repr(driver) + str(vars(driver))


@pytest.mark.parametrize("is_answer_lost", [False, True])
@pytest.mark.parametrize("every", [pytest.param(2, marks=pytest.mark.proof), pytest.param(17, marks=pytest.mark.broad)])
def test_the_active_name_node_changes_before_each_change_of_a_compaction(
    every: int, is_answer_lost: bool, secured_hdfs: SecuredHdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or after it, and the answer is lost: the same rows, watermark and files as in memory."""
    there = Backend(f"hdfs://lake/lake/{uuid.uuid4().hex}", secured_hdfs.options, LinkMode.COPY)
    life = TableLife(there).chapters()
    known = list(islice(TableLife(Backend(f"memory://{uuid.uuid4().hex}", {}, LinkMode.COPY)).chapters(), 3))
    found = list(islice(life, 2))
    changes = count()

    class FailingOver(HTTPSConnection):
        is_struck = False

        def request(self, method: str, url: str, *rest: Any, **more: Any) -> None:
            is_change = method != "GET" and "/webhdfs/v1" in url and "namenoderpcaddress" not in url
            self.is_struck = is_change and next(changes) % every == 0  # the repeated request is let through
            if self.is_struck and not is_answer_lost:
                secured_hdfs.fail_over()
            super().request(method, url, *rest, **more)

        def getresponse(self) -> HTTPResponse:
            answer = super().getresponse()
            if self.is_struck and is_answer_lost and answer.status < 400:
                secured_hdfs.fail_over()
                raise ConnectionResetError("the active NameNode is gone")
            return answer

    with monkeypatch.context() as patch:
        patch.setattr("eventide_adapters.storage.hdfs.webhdfs.HTTPSConnection", FailingOver)
        found.append(next(life))
    assert next(changes) > 20
    for one, other in zip(found, known, strict=True):
        for part, known_part in zip(one.as_with_copies(), other.as_with_copies(), strict=True):
            assert part == known_part
    assert there.table().verify(deep=True).ok
