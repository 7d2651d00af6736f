"""hoodie.properties against Java's own reader, which every other engine uses."""

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide_core.table.settings.properties import parse_properties

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.broad]

_ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\n \t\n"])
_WORDS = st.text(st.sampled_from("ab1,#!$"), min_size=1, max_size=4)
_PIECES = st.lists(
    st.one_of(_WORDS, st.sampled_from(["\\:", "\\=", "\\ ", "\\\\", "\\t", "="])), min_size=1, max_size=4
).map("".join)
_KEYS = st.builds(
    str.__add__, st.sampled_from(["k", "\\#", "\\ "]), st.one_of(_WORDS, st.sampled_from(["\\:", "\\\\"]))
)
_VALUES = st.builds(str.join, st.sampled_from(["\\\n", "\\\r\n  ", "\\\n\t"]), st.lists(_PIECES, max_size=3))
_SETTINGS = st.tuples(
    st.sampled_from(["", " ", "\t\f"]), _KEYS, st.sampled_from(["=", ":", " ", " = ", "\t:", " : "]), _VALUES
).map("".join)
_LINES = st.one_of(_SETTINGS, _WORDS, st.sampled_from(["# comment \\", "! a=b", ""]))
_TEXTS = st.lists(st.builds(str.__add__, _LINES, _ENDS), max_size=5).map("".join)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=_TEXTS)
def test_settings_are_what_java_reads(text: str, spark: "SparkSession") -> None:
    jvm: Any = spark.sparkContext._jvm
    read = jvm.java.util.Properties()
    read.load(jvm.java.io.StringReader(text))
    assert parse_properties(text) == {key: value.rstrip() for key, value in dict(read).items()}
