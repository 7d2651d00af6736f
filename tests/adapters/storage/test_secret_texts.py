"""Error messages of fsspec packages, without the secrets that they quote."""

import pytest

from eventide.cli.redaction import Redaction
from eventide_adapters.storage.secret_texts import secrets_in, without_secrets

SECRETS = (
    "DefaultEndpointsProtocol=https;AccountName=lake;AccountKey=c2VjcmV0LWtleQ==;EndpointSuffix=x",
    '{"private_key": "PRIVATE-TEXT", "project": "p"}',
    "?sv=1&sig=abc%3D",
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key c2VjcmV0LWtleQ== was refused for lake", "key *** was refused for lake"),
        ("invalid grant for PRIVATE-TEXT", "invalid grant for ***"),
        ("GET https://lake.x/f?sv=1&sig=other%2B&se=2 failed", "GET https://lake.x/f?sv=1&sig ***&se=2 failed"),
        ("{'Authorization': 'Bearer ya29.token-text'}", "{'Authorization': 'Bearer ***'}"),
        ("cannot reach https://me:word@host/f", "cannot reach https://***@host/f"),
        ("GET https://x/f?X-Goog-Signature=9f&a=1", "GET https://x/f?X-Goog-Signature ***&a=1"),
        ("no such container", "no such container"),
    ],
)
def test_an_error_shows_no_secret_of_the_settings_and_no_signature(text: str, shown: str) -> None:
    assert without_secrets(text, SECRETS) == shown


ID = "s3.access-key-id"


@pytest.mark.parametrize(
    ("settings", "text", "shown"),
    [
        ({ID: "reader1"}, "the bucket reader1 has no reader1", "the bucket reader1 has no reader1"),
        ({ID: "lakereader"}, "lakereaders read /lakereader/t", "lakereaders read /***/t"),
        ({ID: "AKIAIOSFODNN7EXAMPLE"}, "xAKIAIOSFODNN7EXAMPLEx", "x***x"),
        ({"fs.s3a.access.key": "lake"}, "no bucket lake", "no bucket lake"),
        ({"s3.secret-access-key": "lake"}, "lake of the lakes, a_lake", "*** of the lakes, a_***"),
        ({"fsspec.account_key": "lake"}, "the key 'lake\\nlake' of lakes", "the key '***\\n***' of lakes"),
    ],
)
def test_the_id_of_a_key_and_a_word_are_hidden_only_as_whole_values(
    settings: dict[str, str], text: str, shown: str
) -> None:
    assert without_secrets(text, secrets_in(settings.items())) == shown
    redaction = Redaction()
    redaction.add(settings)
    assert redaction.clean(text) == shown
