"""A sync to DataHub, by DataHub's own client: `./run compat datahub` runs it in an environment of its own.

DataHub itself isn't run: the server here keeps aspects as DataHub does and answers by its rest.li protocol. What is sent
must be aspects that the library's classes accept.
"""

# The library has an environment of its own.
# pyright: reportMissingImports=false
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest

from eventide import CatalogError, Table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(find_spec("datahub") is None, reason="DataHub has an environment of its own")

TOKEN = "not-to-be-shown"
SERVER_KEY, TOKEN_KEY = "hoodie.meta.sync.datahub.emitter.server", "hoodie.meta.sync.datahub.emitter.token"
URN = "urn:li:dataset:(urn:li:dataPlatform:hudi,lake.trips,DEV)"
WATERMARK = "hoodie.ro.event.time.watermark"
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("trip", pa.string(), nullable=False),
    pa.field("city", pa.string()),
    pa.field("ended_at", pa.timestamp("us", "UTC")),
    pa.field("fare", pa.decimal128(9, 2)),
    pa.field("tips", pa.list_(pa.int64())),
]


class DataHub(ThreadingHTTPServer):
    """Aspects by URN and name, as JSON values. `posts` counts requests that write."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.aspects: dict[str, dict[str, Any]] = {}
        self.posts = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def take(self, proposal: dict[str, Any]) -> None:
        found = self.aspects.setdefault(proposal["entityUrn"], {})
        name, value = proposal["aspectName"], json.loads(proposal["aspect"]["value"])
        if proposal["changeType"] == "UPSERT":
            found[name] = value
            return
        assert (proposal["changeType"], name) == ("PATCH", "datasetProperties")
        properties = found.setdefault(name, {"customProperties": {}, "tags": []})["customProperties"]
        for step in value:
            (top, key) = step["path"].removeprefix("/").split("/")
            assert top == "customProperties"
            key = key.replace("~1", "/").replace("~0", "~")
            if step["op"] == "add":
                properties[key] = step["value"]
            else:
                properties.pop(key, None)


class Handler(BaseHTTPRequestHandler):
    @property
    def datahub(self) -> DataHub:
        assert isinstance(self.server, DataHub)
        return self.server

    def do_GET(self) -> None:
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self.answer(401, {"message": "Unauthorized"})
        path = urlsplit(self.path).path
        if not path.startswith("/entitiesV2/"):
            return self.answer(200, {"noCode": "true"})
        urn = unquote(path.removeprefix("/entitiesV2/"))
        aspects = {"datasetKey": {}, **self.datahub.aspects.get(urn, {})}
        return self.answer(200, {"urn": urn, "aspects": {name: {"value": value} for name, value in aspects.items()}})

    def do_POST(self) -> None:
        proposals = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["proposals"]
        self.datahub.posts += 1
        for one in proposals:
            self.datahub.take(one)
        self.answer(200, {})

    def answer(self, code: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def datahub() -> Iterator[DataHub]:
    with DataHub() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def trips(tmp_path: "Path", datahub: DataHub) -> Table:
    made = Table.create(
        str(tmp_path / "trips"),
        schema=pa.schema(COLUMNS),
        record_key="trip",
        partition="city",
        event_time="ended_at",
        options={"hoodie.bucket.index.num.buckets": 1, SERVER_KEY: datahub.url, TOKEN_KEY: TOKEN},
    )
    made.upsert(rows("t1"))
    return made


def rows(*keys: str) -> pa.Table:
    ended = datetime(2026, 3, 2, 8, tzinfo=UTC)
    values = [{"trip": key, "city": "Oslo", "ended_at": ended, "fare": Decimal("1.25"), "tips": [2]} for key in keys]
    return pa.Table.from_pylist(values, schema=pa.schema(COLUMNS))


def test_a_dataset_follows_the_table(trips: Table, datahub: DataHub) -> None:
    from datahub.metadata.schema_classes import SchemaMetadataClass

    (done,) = trips.sync("datahub", database="lake").tables
    assert (done.name, done.is_created) == ("trips", True)
    aspects = datahub.aspects[URN]
    assert aspects.keys() == {"schemaMetadata", "status", "datasetProperties"}
    assert aspects["status"] == {"removed": False}
    assert WATERMARK not in aspects["datasetProperties"]["customProperties"]
    schema = SchemaMetadataClass.from_obj(aspects["schemaMetadata"], tuples=True)
    assert schema.validate()
    assert [one.fieldPath.rpartition(".")[2] for one in schema.fields] == [one.name for one in COLUMNS]
    assert [one.nullable for one in schema.fields] == [False, *4 * [True]]

    trips.sync("datahub", database="lake")
    assert datahub.posts == 1, "nothing has changed"

    aspects["datasetProperties"]["customProperties"]["team"] = "trips"
    compacted = trips.compact(before="2026-03-03T00:00:00Z")
    trips.sync("datahub", database="lake")
    properties = datahub.aspects[URN]["datasetProperties"]["customProperties"]
    assert properties[WATERMARK] == str(compacted.freshness.watermark_ms)
    assert (properties["team"], properties["hudi.table.type"]) == ("trips", "MERGE_ON_READ")


def test_each_compaction_updates_the_dataset_that_the_options_name(trips: Table, datahub: DataHub) -> None:
    options = {
        **trips.options,
        "hoodie.meta.sync.enable": "true",
        "hoodie.meta.sync.client.tool.class": "org.apache.hudi.sync.datahub.DataHubSyncTool",
        "hoodie.meta.sync.datahub.dataset.env": "PROD",
        "hoodie.meta.sync.datahub.dataplatform_instance.name": "eu",
        "hoodie.meta.sync.datahub.database.name": "Lake",
        "hoodie.meta.sync.datahub.table.name": "Rides",
    }
    done = Table.open(trips.uri, options).compact(before="2026-03-03T00:00:00Z")
    assert done.sync_error is None
    (urn,) = datahub.aspects
    assert urn == "urn:li:dataset:(urn:li:dataPlatform:hudi,eu.Lake.Rides,PROD)"


def test_a_refused_token_and_a_server_that_is_gone_are_errors_without_the_token(trips: Table, datahub: DataHub) -> None:
    wrong = Table.open(trips.uri, {**trips.options, TOKEN_KEY: "wrong-" + TOKEN})
    with pytest.raises(CatalogError, match=r"401.*check its address and the token") as refused:
        wrong.sync("datahub")
    datahub.shutdown()
    datahub.server_close()
    with pytest.raises(CatalogError, match=r"DataHub at http://127.0.0.1:.* did not answer") as gone:
        trips.sync("datahub")
    assert TOKEN not in str(refused.value) + str(gone.value)
    assert gone.value.exit_code == 5


def test_the_command_line_syncs_and_no_output_has_the_token(trips: Table, datahub: DataHub) -> None:
    command = [sys.executable, "-m", "eventide", "sync", trips.uri, "--catalog", "datahub", "--database", "lake"]
    options = [word for key, value in trips.options.items() for word in ("--option", f"{key}={value}")]
    done = subprocess.run([*command, *options, "--output", "json"], check=True, capture_output=True, encoding="utf-8")
    assert (json.loads(done.stdout)["catalog"], list(datahub.aspects)) == ("datahub", [URN])
    assert TOKEN not in done.stdout + done.stderr
