"""HTTP's Negotiate authentication with Kerberos, by the operating system's own GSSAPI library.

The packages of the registry that wrap this library come without a build for Linux, so they need a compiler and Kerberos's
headers. MIT's library itself is part of nearly every Linux (Debian: libgssapi-krb5-2; Red Hat: krb5-libs), and reads
KRB5_CONFIG, KRB5CCNAME and /etc/krb5.conf like `kinit` and `klist`.
"""

import base64
import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ctypes import POINTER, byref, c_char_p, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_LIBRARY: Final = "libgssapi_krb5.so.2"
_HOST_BASED_SERVICE: Final = bytes.fromhex("2a864886f71201020104")
_USER_NAME: Final = bytes.fromhex("2a864886f71201020101")
# Servers accept Kerberos's own token as well as one that SPNEGO wraps, whose library hides Kerberos's own message.
_KERBEROS: Final = bytes.fromhex("2a864886f712010202")
_INITIATE: Final = 1
_ERRORS: Final = 0xFFFF0000
_OF_GSS, _OF_MECHANISM = 1, 2


class KerberosError(Exception):
    """No ticket for the service. The text is Kerberos's own message, in one line."""


@dataclass(frozen=True, slots=True)
class Login:
    """Whose tickets to use: a keytab's, or the ticket cache's.

    `keytab` is the path of a file on this machine; None for the cache. `principal`: None for the first one in the keytab, or
    the cache's default.
    """

    principal: str | None = None
    keytab: str | None = None


class _Buffer(ctypes.Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class _OidSet(ctypes.Structure):
    _fields_ = (("count", c_size_t), ("elements", POINTER(_Oid)))


class _Pair(ctypes.Structure):
    _fields_ = (("key", c_char_p), ("value", c_char_p))


class _Pairs(ctypes.Structure):
    _fields_ = (("count", c_uint32), ("elements", POINTER(_Pair)))


def negotiate_header(host: str, login: Login) -> str:
    """The value of the header `Authorization` for a request to the service HTTP on that host. Raises KerberosError."""
    library, minor = _library(), c_uint32()
    with ExitStack() as stack:
        target = stack.enter_context(_name(library, f"HTTP@{host}", _HOST_BASED_SERVICE))
        credential = stack.enter_context(_credential(library, login))
        context, token = c_void_p(), _Buffer()
        status = library.gss_init_sec_context(
            *(byref(minor), credential, byref(context), target, byref(_oid(_KERBEROS)), c_uint32(0), c_uint32(0)),
            *(None, None, None, byref(token), None, None),
        )
        stack.callback(library.gss_delete_sec_context, byref(c_uint32()), byref(context), None)
        stack.callback(library.gss_release_buffer, byref(c_uint32()), byref(token))
        _check(library, status, minor)
        return f"Negotiate {base64.b64encode(_bytes(token)).decode()}"


@cache
def _library() -> Any:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError as missing:
        raise KerberosError(
            f"{_LIBRARY} is not installed (Debian: apt install libgssapi-krb5-2; Red Hat: dnf install krb5-libs)"
        ) from missing


@contextmanager
def _name(library: Any, text: str, kind: bytes) -> Iterator[c_void_p]:
    raw, name, minor = text.encode(), c_void_p(), c_uint32()
    buffer = _Buffer(len(raw), ctypes.cast(c_char_p(raw), c_void_p))
    _check(library, library.gss_import_name(byref(minor), byref(buffer), byref(_oid(kind)), byref(name)), minor)
    try:
        yield name
    finally:
        library.gss_release_name(byref(c_uint32()), byref(name))


@contextmanager
def _credential(library: Any, login: Login) -> Iterator[c_void_p | None]:
    """None for the default one of the ticket cache."""
    if login.principal is None and login.keytab is None:
        yield None
        return
    minor, credential = c_uint32(), c_void_p()
    store: dict[str, str] = {}
    if login.keytab is not None:
        # Tickets that a keytab obtains stay in this process.
        store = {"client_keytab": login.keytab, "ccache": f"MEMORY:{login.keytab} {login.principal}"}
    pairs = (_Pair * len(store))(*(_Pair(key.encode(), value.encode()) for key, value in store.items()))
    with ExitStack() as stack:
        principal = None
        if login.principal is not None:
            principal = stack.enter_context(_name(library, login.principal, _USER_NAME))
        status = library.gss_acquire_cred_from(
            *(byref(minor), principal, c_uint32(0xFFFFFFFF), byref(_OidSet(1, ctypes.pointer(_oid(_KERBEROS))))),
            *(_INITIATE, byref(_Pairs(len(store), pairs)), byref(credential), None, None),
        )
        stack.callback(library.gss_release_cred, byref(c_uint32()), byref(credential))
        _check(library, status, minor)
        yield credential


def _check(library: Any, status: int, minor: c_uint32) -> None:
    """Raises KerberosError."""
    if not status & _ERRORS:
        return
    message = _text(library, minor.value, _OF_MECHANISM) if minor.value else ""
    raise KerberosError(message or _text(library, status, _OF_GSS))


def _text(library: Any, status: int, kind: int) -> str:
    minor, more, text = c_uint32(), c_uint32(), _Buffer()
    library.gss_display_status(byref(minor), c_uint32(status), kind, None, byref(more), byref(text))
    try:
        return " ".join(_bytes(text).decode(errors="replace").split())
    finally:
        library.gss_release_buffer(byref(minor), byref(text))


def _oid(elements: bytes) -> _Oid:
    return _Oid(len(elements), elements)


def _bytes(buffer: _Buffer) -> bytes:
    return ctypes.string_at(buffer.value, buffer.length) if buffer.value else b""
