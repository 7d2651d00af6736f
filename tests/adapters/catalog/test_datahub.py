"""DataHub's adapter where its library is missing. `./run compat datahub` runs tests/smoke/test_datahub.py with it."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from eventide import ConfigError
from support.tables.small import make


@pytest.mark.skipif(find_spec("datahub") is not None, reason="the library is installed")
def test_a_missing_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"pip install '.*\[datahub\]'"):
        make(tmp_path / "t", 9).sync("datahub")
