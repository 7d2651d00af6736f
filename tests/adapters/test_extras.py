"""A message about a missing extra names a command that works where eventide was installed from."""

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from eventide_adapters import extras


def _recorded(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: SimpleNamespace(read_text=lambda _: text))


def test_an_extra_comes_from_the_checkout_or_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    _recorded(monkeypatch, json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}}))
    assert extras.install_command("s3") == f"pip install '{checkout}[s3]'"


@pytest.mark.parametrize("text", [None, "{}", '{"url": "file:///gone/eventide-0.1.0-py3-none-any.whl"}'])
def test_otherwise_it_comes_by_name(text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    _recorded(monkeypatch, text)
    assert extras.install_command("s3") == "pip install 'eventide[s3]'"


def test_packages_that_are_only_on_the_path_have_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", nothing)
    assert extras.install_command("s3") == "pip install 'eventide[s3]'"
