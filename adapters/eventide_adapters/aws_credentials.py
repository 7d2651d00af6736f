"""The credentials that Hudi's options give every service of AWS."""

from collections.abc import Mapping
from typing import Any, Final

from eventide_core.errors import ConfigError

ACCESS_KEY: Final = "hoodie.aws.access.key"
SECRET_KEY: Final = "hoodie.aws.secret.key"
SESSION_TOKEN: Final = "hoodie.aws.session.token"
MISSING: Final = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "TokenRetrievalError",
        "UnauthorizedSSOTokenError",
        "ProfileNotFound",
        "UnknownCredentialError",
        "SSOTokenLoadError",
        "ConfigParseError",
        "ConfigNotFound",
        "InvalidConfigError",
        "InfiniteLoopConfigError",
        "InvalidRegionError",
        "NoRegionError",
    }
)
"""botocore's errors if there are no credentials, only a part of them, or none that its configuration leads to."""


def client_credentials(options: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of botocore's clients: None for what the options leave out, which botocore finds as the AWS tools do."""
    return {
        "aws_access_key_id": options.get(ACCESS_KEY),
        "aws_secret_access_key": options.get(SECRET_KEY),
        "aws_session_token": options.get(SESSION_TOKEN),
    }


def require_credentials(service: str, failure: Exception) -> None:
    """Raises ConfigError if the failure is that there are no credentials: another try doesn't change it."""
    if type(failure).__name__ in MISSING:
        raise ConfigError(
            f"{service}: {failure}; set {ACCESS_KEY} and {SECRET_KEY}, or set credentials as the AWS tools find them"
        ) from failure
