"""The addresses of an HDFS namespace, from Hadoop's own settings.

A setting is an option, with or without Spark's prefix `spark.hadoop.`, otherwise a property of `hdfs-site.xml` in
HADOOP_CONF_DIR. The web addresses of the NameNodes of `hdfs://NAME` are

1. of the NameNodes that `dfs.ha.namenodes.NAME` names, in this order, if NAME is a name service: each one's
   `dfs.namenode.http-address.NAME.ID`, otherwise Hadoop's port at the host of `dfs.namenode.rpc-address.NAME.ID`;
   without that key, every `dfs.namenode.http-address.NAME.*`, in order of key;
2. otherwise `dfs.namenode.http-address`, one or more addresses separated by commas;
3. otherwise the host NAME with Hadoop's port for web addresses.

With `dfs.http.policy=HTTPS_ONLY`, the same applies to `dfs.namenode.https-address`. `webhdfs://HOST:PORT` and
`swebhdfs://HOST:PORT` contain the address. The option BYTES selects WebHDFS or libhdfs for the transfer of bytes.
libhdfs gets every setting of `dfs.`, and finds the NameNode of `hdfs://NAME` like any Hadoop client.
"""

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from eventide_adapters.storage.secret_texts import refuse_user_info
from eventide_core.config.option import TEXT, Option, Options, choice, optional, whole_number
from eventide_core.errors import ConfigError

_SPARK = "spark.hadoop."
_NAME_NODES = "dfs.ha.namenodes"
_RPC_ADDRESS = "dfs.namenode.rpc-address"
# Hadoop's default ports of a NameNode's web addresses.
_PORTS = {"http": 9870, "https": 9871}


class BytesBy(StrEnum):
    """The transport for the bytes of files."""

    WEBHDFS = "webhdfs"
    LIBHDFS = "libhdfs"


USER = optional(
    "hadoop.user.name",
    TEXT,
    "The user who asks the NameNode.",
    otherwise="HADOOP_USER_NAME, else the user of the process",
)
DELEGATION_TOKEN = optional(
    "hdfs.delegation.token", TEXT, "A token as `hdfs fetchdt --webservice` prints it. No message shows it.", secret=True
)
PRINCIPAL = optional(
    "hdfs.kerberos.principal",
    TEXT,
    "The Kerberos principal who asks the NameNode.",
    otherwise="the principal of the keytab or the ticket cache",
)
KEYTAB = optional(
    "hdfs.kerberos.keytab",
    TEXT,
    "A keytab of that principal, on the driver.",
    otherwise="the ticket cache, which `kinit` fills",
)
BYTES = Option("hdfs.bytes", choice(BytesBy), BytesBy.WEBHDFS, "What moves the bytes of files.")
POLICY = Option("dfs.http.policy", TEXT, "HTTP_ONLY", "HTTPS_ONLY uses TLS.")
HTTP_ADDRESS = optional(
    "dfs.namenode.http-address",
    TEXT,
    "Web addresses of `hdfs://NAME`, separated by commas; with the suffix `.NAME.*`, a name service's.",
    otherwise="port 9870 of the host NAME",
)
HTTPS_ADDRESS = optional(
    "dfs.namenode.https-address",
    TEXT,
    "The same where the policy is HTTPS_ONLY.",
    otherwise="port 9871 of the host NAME",
)
TIMEOUT_SECONDS = Option("hdfs.request-timeout", whole_number(at_least=1), 60, "Seconds that a request may take.")


@dataclass(frozen=True, slots=True)
class NativeConfig:
    """The configuration of libhdfs. `settings` are Hadoop's keys of `dfs.`, which are never shown.

    `host` is the NameNode's, with its RPC `port`; or, with port 0, a name service or a NameNode at Hadoop's default port.
    `user`: None for whom Java's own login names, the only one that Kerberos accepts.
    """

    host: str
    port: int
    user: str | None
    settings: tuple[tuple[str, str], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class HdfsConfig:
    """How to reach the NameNodes of one HDFS namespace.

    `addresses` are one or more URLs, one of which is active. `user` is who asks, without Kerberos or a token.
    `delegation_token` is used until the NameNode refuses it; None without one. `principal` and `keytab` decide whose
    Kerberos tickets to use then, as in `Login`. `timeout_seconds` is for one request. `native` is set if libhdfs transfers
    bytes.

    Is sent to executors. Its text contains no token.
    """

    addresses: tuple[str, ...]
    user: str
    delegation_token: str | None = field(repr=False)
    principal: str | None
    keytab: str | None
    timeout_seconds: int
    native: NativeConfig | None

    @classmethod
    def of(cls, scheme: str, authority: str, options: Options) -> "HdfsConfig":
        """Raises ConfigError."""
        settings = _settings(options)
        user = settings.get(USER) or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        return cls(
            _addresses(scheme, authority, settings),
            user,
            settings.get(DELEGATION_TOKEN),
            settings.get(PRINCIPAL),
            settings.get(KEYTAB),
            settings.get(TIMEOUT_SECONDS),
            _native(scheme, authority, settings) if settings.get(BYTES) is BytesBy.LIBHDFS else None,
        )


def _addresses(scheme: str, authority: str, settings: Options) -> tuple[str, ...]:
    if scheme != "hdfs":
        return (f"{'https' if scheme == 'swebhdfs' else 'http'}://{authority}",)
    http, key = ("https", HTTPS_ADDRESS) if settings.get(POLICY).upper() == "HTTPS_ONLY" else ("http", HTTP_ADDRESS)
    name = authority.partition(":")[0]
    given = _of_service(name, key, _PORTS[http], settings.values) or (settings.get(key) or "").split(",")
    for address in given:
        refuse_user_info(address, key)
    addresses = tuple(f"{http}://{address.strip()}" for address in given if address.strip())
    return addresses or (f"{http}://{name}:{_PORTS[http]}",)


def _of_service(name: str, key: str, port: int, values: Mapping[str, str]) -> list[str]:
    """The web addresses of a name service's NameNodes."""
    ids = values.get(f"{_NAME_NODES}.{name}", "").replace(",", " ").split()
    if not ids:
        return [text for k, text in sorted(values.items()) if k.startswith(f"{key}.{name}.")]
    addresses: list[str] = []
    for one in ids:
        host = values.get(f"{_RPC_ADDRESS}.{name}.{one}", "").partition(":")[0]
        address = values.get(f"{key}.{name}.{one}") or (f"{host}:{port}" if host else "")
        if not address:
            raise ConfigError(
                f"{_NAME_NODES}.{name} names {one!r}, which has no address: set {key}.{name}.{one}, or point "
                "HADOOP_CONF_DIR to the directory of a complete hdfs-site.xml"
            )
        addresses.append(address)
    return addresses


def _native(scheme: str, authority: str, settings: Options) -> NativeConfig:
    host, _, port = authority.partition(":")
    if scheme != "hdfs" or not (port or "0").isdecimal():
        raise ConfigError(
            f"option {BYTES}='libhdfs' needs the NameNode's address for Hadoop's clients, but "
            f"{scheme}://{authority} is another one: open the table as hdfs://HOST:PORT or hdfs://NAME, and "
            "set the web address as dfs.namenode.http-address"
        )
    given = tuple(sorted((key, value) for key, value in settings.values.items() if key.startswith("dfs.")))
    return NativeConfig(host, int(port or 0), settings.get(USER), given)


def _settings(options: Options) -> Options:
    given = {key: value.strip() for key, value in options.values.items() if value.strip()}
    from_spark = {key.removeprefix(_SPARK): value for key, value in given.items() if key.startswith(_SPARK)}
    return Options({**_site(os.environ.get("HADOOP_CONF_DIR")), **from_spark, **given})


def _site(directory: str | None) -> dict[str, str]:
    """The content of hdfs-site.xml; empty if there is none."""
    path = Path(directory or "", "hdfs-site.xml")
    if directory is None or not path.exists():
        return {}
    from xml.etree import ElementTree

    try:
        properties = ElementTree.parse(path).iter("property")
        return {p.findtext("name", "").strip(): p.findtext("value", "").strip() for p in properties}
    except (OSError, ElementTree.ParseError) as failure:
        raise ConfigError(f"{path} cannot be read: {failure}") from failure
