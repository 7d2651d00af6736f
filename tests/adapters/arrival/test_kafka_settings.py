"""What a source of the kind kafka takes of librdkafka, whose settings a table may have written."""

import pytest

from eventide_adapters.arrival.kafka import open_kafka
from eventide_core.errors import ConfigError

GIVEN = {"bootstrap_servers": "localhost:9", "topic": "orders", "latency": "1m"}


@pytest.mark.parametrize(
    "setting", ["plugin_library_paths", "sasl_kerberos_kinit_cmd", "sasl_oauthbearer_config", "debug"]
)
def test_a_setting_that_may_load_or_run_code_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"'{setting}' is not a setting of this kind"):
        open_kafka("orders", {**GIVEN, setting: "/tmp/evil.so"})
