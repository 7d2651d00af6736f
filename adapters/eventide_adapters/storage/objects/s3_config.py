"""The connection to an S3 store, from the options that users of Hadoop, Hudi, and Iceberg know.

Other settings come from the sources of the AWS tools: AWS_* variables, the profile's files, and the machine's role.
"""

from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from eventide_adapters import aws_credentials
from eventide_adapters.storage.objects import contract
from eventide_adapters.storage.secret_texts import refuse_user_info, secrets_in
from eventide_core.config.option import FLAG, TEXT, Option, Options, optional, whole_number
from eventide_core.errors import ConfigError

ENDPOINT = optional(
    "s3.endpoint",
    TEXT,
    "The address of the store.",
    otherwise="Amazon's, or AWS_ENDPOINT_URL",
    aliases=("fs.s3a.endpoint",),
)
REGION = optional(
    "s3.region",
    TEXT,
    "The region of the bucket.",
    otherwise="as the AWS tools find it",
    aliases=("fs.s3a.endpoint.region",),
)
ACCESS_KEY = optional(
    "s3.access-key-id",
    TEXT,
    "The access key. Needs the secret key.",
    otherwise="as the AWS tools find it",
    aliases=("fs.s3a.access.key", aws_credentials.ACCESS_KEY),
    secret=True,
)
SECRET_KEY = optional(
    "s3.secret-access-key",
    TEXT,
    "The secret key, which no message shows.",
    otherwise="as the AWS tools find it",
    aliases=("fs.s3a.secret.key", aws_credentials.SECRET_KEY),
    secret=True,
)
SESSION_TOKEN = optional(
    "s3.session-token",
    TEXT,
    "The token of temporary credentials, which no message shows.",
    otherwise="as the AWS tools find it",
    aliases=("fs.s3a.session.token", aws_credentials.SESSION_TOKEN),
    secret=True,
)
PROFILE = optional("s3.profile-name", TEXT, "A profile in the files of the AWS tools.", otherwise="AWS_PROFILE")
PATH_STYLE = optional(
    "s3.path-style-access",
    FLAG,
    "Whether buckets are directories of the endpoint, not hosts of their own.",
    otherwise="true for an endpoint that is not Amazon's",
    aliases=("fs.s3a.path.style.access",),
)
SSL = Option("fs.s3a.connection.ssl.enabled", FLAG, True, "Whether an endpoint without a scheme uses TLS.")
TIMEOUT_SECONDS = Option("s3.request-timeout", whole_number(at_least=1), 60, "Seconds that a request may take.")
_SPARK = "spark.hadoop."
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class S3Config:
    """The connection to an S3 store. None leaves a setting to the rules of the AWS tools.

    `endpoint` is a URL with its scheme. `region` is the bucket's. `access_key` and `secret_key` are both set, or neither;
    `session_token` belongs to temporary credentials. `profile` is the name of a profile in the files of the AWS tools.
    `has_path_style`: the bucket is a directory of the endpoint, not a host of its own. `timeout_seconds` is for one request.
    `allows_unsafe_writes`: the user promises that nobody else writes, so the store may ignore `If-None-Match`.

    Is sent to executors, including secrets, but its text shows none.
    """

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
    def secrets(self) -> tuple[str, ...]:
        """The values that no text may show."""
        values = (self.access_key, self.secret_key, self.session_token)
        options = (ACCESS_KEY, SECRET_KEY, SESSION_TOKEN)
        return secrets_in((str(option), value) for option, value in zip(options, values, strict=True) if value)

    @classmethod
    def of(cls, options: Options) -> "S3Config":
        """The configuration. Raises ConfigError, which names keys but no value that could be a secret."""
        passed_on = Options(
            {key.removeprefix(_SPARK): text for key, text in options.values.items() if key.startswith(_SPARK)}
        )

        def get(option: Option[T]) -> T:
            """The option itself, otherwise the value that Spark passes on to Hadoop."""
            return (passed_on if options.text(option) is None else options).get(option)

        endpoint = get(ENDPOINT)
        if endpoint is not None and "://" not in endpoint:
            endpoint = f"{'https' if get(SSL) else 'http'}://{endpoint}"
        refuse_user_info(endpoint, " or ".join(ENDPOINT.names))
        access_key, secret_key = get(ACCESS_KEY), get(SECRET_KEY)
        if (access_key is None) != (secret_key is None):
            given, missing = (ACCESS_KEY, SECRET_KEY) if secret_key is None else (SECRET_KEY, ACCESS_KEY)
            raise ConfigError(
                f"option {given} (or {given.aliases[0]}) requires {missing} (or {missing.aliases[0]}), which is missing"
            )
        has_path_style = get(PATH_STYLE)
        return cls(
            endpoint=endpoint,
            region=get(REGION),
            access_key=access_key,
            secret_key=secret_key,
            session_token=get(SESSION_TOKEN),
            profile=get(PROFILE),
            has_path_style=_is_own_server(endpoint) if has_path_style is None else has_path_style,
            timeout_seconds=get(TIMEOUT_SECONDS),
            allows_unsafe_writes=options.get(contract.UNSAFE_WRITES),
        )


def _is_own_server(endpoint: str | None) -> bool:
    """Whether buckets are directories of this endpoint, instead of separate hosts as at Amazon."""
    host = urlsplit(endpoint or "").hostname
    return host is not None and not host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
