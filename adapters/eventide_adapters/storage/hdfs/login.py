"""How requests to a NameNode authenticate: with a user's name, or with a delegation token where Kerberos is required.

A token comes from the option DELEGATION_TOKEN, from the driver (a pickled storage contains the driver's), or from the
NameNode, by Kerberos, once it has refused a request. A token that it no longer accepts is replaced in the same way. So a
run may be longer than a token's or a ticket's life, and an executor needs neither a ticket nor a keytab.
"""

import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from eventide_adapters.storage.hdfs.config import DELEGATION_TOKEN, KEYTAB, PRINCIPAL, HdfsConfig
from eventide_adapters.storage.hdfs.spnego import KerberosError, Login, negotiate_header
from eventide_core.errors import StorageAccessError


class HdfsLogin:
    """Of one process. Several threads may use it."""

    def __init__(self, config: HdfsConfig, token: str | None) -> None:
        self._config = config
        self._token = token or config.delegation_token
        self._lock = threading.Lock()

    @property
    def token(self) -> str | None:
        return self._token

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no text shows."""
        return tuple(filter(None, (self._token, self._config.delegation_token)))

    def renew(self, refused: str | None, address: str, message: str, fetch: Callable[[str], str | None]) -> bool:
        """Replaces the token that the NameNode refused. Of several threads, the first one does.

        `fetch` asks the NameNode for a token, with a header that authenticates. Returns False if it issues none now.
        Raises StorageAccessError.
        """
        with self._lock:
            if self._token != refused:
                return True
            config = self._config
            login = Login(config.principal, config.keytab)
            try:
                fetched = fetch(negotiate_header(urlsplit(address).hostname or "", login))
            except KerberosError as failure:
                wanted = "requires Kerberos" if refused is None else f"refused the delegation token ({message})"
                raise StorageAccessError(
                    f"{address} {wanted}, and there is no ticket of {_whose(login)} for the service HTTP there: {failure}; "
                    f"run `kinit`, or set {KEYTAB} and {PRINCIPAL}, or a token as {DELEGATION_TOKEN}; `klist` shows the "
                    "tickets, and krb5.conf (KRB5_CONFIG) the realm and its KDC"
                ) from None
            self._token = fetched or self._token
            return fetched is not None


def _whose(login: Login) -> str:
    principal = login.principal or "the first principal"
    if login.keytab is not None:
        return f"{principal} in the keytab {login.keytab}"
    return login.principal or "the ticket cache's principal"
