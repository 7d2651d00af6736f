"""Which bucket a key belongs to, as Java hashes it."""

import pytest

from eventide_core.table.files.bucket import bucket_of, bucket_of_file_id, new_file_id

UUID = "a252ffff-a252-4312-8a35-05f9acef09e9"


@pytest.mark.parametrize(
    ("key", "java_list_hash"),
    [
        ("", 31),
        ("a", 31 + 97),
        ("k0", 31 + 107 * 31 + 48),
        ("\U0001f600", 31 + 0xD83D * 31 + 0xDE00),
        ("polygenelubricants", (31 - 2**31) & 0x7FFF_FFFF),
    ],
)
def test_a_key_goes_where_javas_list_hash_code_sends_it(key: str, java_list_hash: int) -> None:
    assert bucket_of([key], 2**31) == java_list_hash
    assert bucket_of([key], 7) == java_list_hash % 7


def test_a_file_id_contains_its_bucket() -> None:
    assert new_file_id(12, UUID) == "00000012-a252-4312-8a35-05f9acef09e9-0"
    assert bucket_of_file_id(new_file_id(12, UUID)) == 12


def test_a_file_id_of_another_index_is_no_buckets() -> None:
    assert bucket_of_file_id(UUID) is None
    assert bucket_of_file_id("99999999-a252-4312-8a35-05f9acef09e9-0") is None


def test_the_values_of_several_key_fields_are_hashed_one_after_another() -> None:
    assert bucket_of(["a", "b"], 2**31) == (31 * (31 + 97) + 98) & 0x7FFF_FFFF
