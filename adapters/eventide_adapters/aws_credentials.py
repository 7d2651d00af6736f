"""The credentials that Hudi's options give every service of AWS."""

from collections.abc import Mapping
from typing import Any, Final

ACCESS_KEY: Final = "hoodie.aws.access.key"
SECRET_KEY: Final = "hoodie.aws.secret.key"
SESSION_TOKEN: Final = "hoodie.aws.session.token"


def client_credentials(options: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of botocore's clients: None for what the options leave out, which botocore finds as the AWS tools do."""
    return {
        "aws_access_key_id": options.get(ACCESS_KEY),
        "aws_secret_access_key": options.get(SECRET_KEY),
        "aws_session_token": options.get(SESSION_TOKEN),
    }
