"""A real KDC of MIT Kerberos with one realm, and the keytabs of its principals.

Its programs come with the operating system (Debian: `apt install krb5-kdc krb5-admin-server krb5-user`).
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.servers.server_process import ServerUnavailableError, answers, free_ports, server

REALM = "EVENTIDE.TEST"
SERVICES = (f"hdfs/localhost@{REALM}", f"HTTP/localhost@{REALM}")
USER = f"lake@{REALM}"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")

_CLIENTS = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  ticket_lifetime = 1h
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
  NOBODY.TEST = {{
    kdc = 127.0.0.1:{closed}
  }}
[domain_realm]
  localhost = {realm}
"""
_KDC = """\
[kdcdefaults]
  kdc_tcp_listen = 127.0.0.1:{port}
  kdc_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {directory}/principal
    key_stash_file = {directory}/stash
    acl_file = {directory}/acl
    supported_enctypes = aes128-cts-hmac-sha1-96:normal aes256-cts-hmac-sha1-96:normal
    max_life = 1h
  }}
"""


@dataclass(frozen=True, slots=True)
class KerberosServer:
    """A running KDC. `services` is the keytab of a cluster, `user` the keytab of USER."""

    settings: Path
    services: Path
    user: Path
    port: int


@contextmanager
def kerberos(directory: Path) -> Iterator[KerberosServer]:
    """A KDC for the length of the block. Raises ServerUnavailableError."""
    programs = {name: shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") for name in _PROGRAMS}
    if missing := [name for name, found in programs.items() if found is None]:
        raise ServerUnavailableError(
            f"{', '.join(missing)} of MIT Kerberos is not installed (Debian: krb5-kdc, krb5-admin-server, krb5-user)"
        )
    port, closed = free_ports(2)
    settings = directory / "krb5.conf"
    settings.write_text(_CLIENTS.format(realm=REALM, port=port, closed=closed))
    (directory / "kdc.conf").write_text(_KDC.format(realm=REALM, port=port, directory=directory))
    (directory / "acl").touch()
    environment = {**os.environ, "KRB5_CONFIG": str(settings), "KRB5_KDC_PROFILE": str(directory / "kdc.conf")}

    def run(program: str, *words: str) -> None:
        done = subprocess.run(
            [str(programs[program]), *words], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ServerUnavailableError(f"{program} {words[-1]}: {done.stderr.strip()}")

    run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of the test")
    services, user = directory / "services.keytab", directory / "user.keytab"
    for keytab, principals in ((services, SERVICES), (user, (USER,))):
        for principal in principals:
            run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        run("kadmin.local", "-q", f"ktadd -k {keytab} {' '.join(principals)}")
    with server([str(programs["krb5kdc"]), "-n"], directory / "log", lambda: answers(port), environment):
        yield KerberosServer(settings, services, user, port)
