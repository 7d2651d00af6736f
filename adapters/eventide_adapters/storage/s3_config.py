"""How an S3 store is reached, from the options that users of Hadoop, Hudi and Iceberg know.

What is not given comes from where the AWS tools look: AWS_* variables, the profile's files, the machine's role.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from eventide_adapters.storage.objects import UNSAFE_WRITES
from eventide_adapters.storage.secret_texts import refuse_user_info
from eventide_core.config import Options
from eventide_core.errors import ConfigError

# Of each kind the first that is given counts; Hadoop's also as Spark passes them on.
_ENDPOINT = ("s3.endpoint", "fs.s3a.endpoint")
"""The store's address. Default: Amazon's, or AWS_ENDPOINT_URL."""
_REGION = ("s3.region", "fs.s3a.endpoint.region")
"""The bucket's region. Default: as the AWS tools find it."""
_ACCESS_KEY = ("s3.access-key-id", "fs.s3a.access.key", "hoodie.aws.access.key")
"""Goes with the secret key. Default: as the AWS tools find it."""
_SECRET_KEY = ("s3.secret-access-key", "fs.s3a.secret.key", "hoodie.aws.secret.key")
"""A secret: shown nowhere. Default: as the AWS tools find it."""
_SESSION_TOKEN = ("s3.session-token", "fs.s3a.session.token", "hoodie.aws.session.token")
"""A secret, of temporary credentials. Default: as the AWS tools find it."""
_PROFILE = ("s3.profile-name",)
"""A profile of the AWS tools' files. Default: AWS_PROFILE."""
_PATH_STYLE = ("s3.path-style-access", "fs.s3a.path.style.access")
"""Whether buckets are folders of the endpoint. Default: true for an endpoint that is not Amazon's."""
_SSL = ("fs.s3a.connection.ssl.enabled",)
"""Whether an endpoint without a scheme is spoken to over TLS. Default: true."""
_TIMEOUT = "s3.request-timeout"
"""Seconds that a request may take."""
_SPARK = "spark.hadoop."

_TIMEOUT_SECONDS_DEFAULT = 60


@dataclass(frozen=True, slots=True)
class S3Config:
    """None is for the AWS tools' own rules to fill. Travels to executors, secrets too; shows none of them."""

    endpoint: str | None
    region: str | None
    access_key: str | None = field(repr=False)
    secret_key: str | None = field(repr=False)
    session_token: str | None = field(repr=False)
    profile: str | None
    has_path_style: bool
    timeout_seconds: int
    allows_unsafe_writes: bool

    @property
    def secrets(self) -> tuple[tuple[str, str], ...]:
        """What no text may show, each with a name."""
        given = (("access_key", self.access_key), ("secret_key", self.secret_key), ("token", self.session_token))
        return tuple((name, secret) for name, secret in given if secret)

    @classmethod
    def of(cls, options: Options) -> "S3Config":
        """Raises ConfigError, which names keys and no value that could be a secret."""
        endpoint = _first(options, _ENDPOINT)
        if endpoint is not None and "://" not in endpoint:
            endpoint = f"{'https' if _is_true(options, _SSL, True) else 'http'}://{endpoint}"
        refuse_user_info(endpoint, " or ".join(_ENDPOINT))
        access_key, secret_key = _first(options, _ACCESS_KEY), _first(options, _SECRET_KEY)
        if (access_key is None) != (secret_key is None):
            given, missing = (_ACCESS_KEY, _SECRET_KEY) if secret_key is None else (_SECRET_KEY, _ACCESS_KEY)
            raise ConfigError(
                f"option {given[0]} (or {given[1]}) goes with {missing[0]} (or {missing[1]}), which is missing"
            )
        timeout_seconds = options.integer(_TIMEOUT, _TIMEOUT_SECONDS_DEFAULT)
        if timeout_seconds == 0:
            raise ConfigError(f"option {_TIMEOUT}='0' leaves a request no time: give seconds")
        return cls(
            endpoint=endpoint,
            region=_first(options, _REGION),
            access_key=access_key,
            secret_key=secret_key,
            session_token=_first(options, _SESSION_TOKEN),
            profile=_first(options, _PROFILE),
            has_path_style=_is_true(options, _PATH_STYLE, _is_own_server(endpoint)),
            timeout_seconds=timeout_seconds,
            allows_unsafe_writes=options.flag(UNSAFE_WRITES),
        )


def _is_own_server(endpoint: str | None) -> bool:
    """Whether buckets are folders of the endpoint there, and not hosts of their own as at Amazon."""
    host = urlsplit(endpoint or "").hostname
    return host is not None and not host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


def _first(options: Options, keys: tuple[str, ...]) -> str | None:
    found = (options.text(prefix + key) for prefix in ("", _SPARK) for key in keys)
    return next((value for value in found if value is not None), None)


def _is_true(options: Options, keys: tuple[str, ...], default: bool) -> bool:
    value = _first(options, keys)
    values: Mapping[str, str] = {} if value is None else {keys[0]: value}
    return Options(values).flag(keys[0]) if values else default
