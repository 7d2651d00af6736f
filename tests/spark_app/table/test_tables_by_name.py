"""Tables by their names in a catalog: in Python, on the command line, and by the settings of a user."""

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from eventide import Catalog, CatalogError, ConfigError, NotAHudiTableError, Table
from eventide_adapters.catalog.glue import GLUE_ENDPOINT, GLUE_REGION
from eventide_core.config import METASTORE_URIS
from support.run.command_line import run, run_json
from support.servers.hive_metastore import HiveMetastoreServer
from support.servers.s3_servers import S3Server
from support.servers.server_process import free_ports
from support.tables.small import make, rows

GLUE_KEY = "hoodie.aws.secret.key"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a user's settings, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("EVENTIDE_CATALOG", raising=False)
    return tmp_path / "eventide.toml"


def _write(settings: Path, catalog: str, options: Mapping[str, str]) -> None:
    lines = "\n".join(f'"{key}" = "{value}"' for key, value in options.items())
    settings.write_text(f'catalog = "{catalog}"\n[options]\n{lines}\n', encoding="utf-8")


def _synced(path: Path, catalog: str, database: str, options: Mapping[str, str]) -> Table:
    table = make(path, 9)
    table.upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    Table.open(table.uri, {**table.options, **options}).sync(catalog, database=database)
    return table


@pytest.mark.slow
def test_a_table_of_glue_is_found_by_its_name(moto: S3Server, settings: Path, tmp_path: Path) -> None:
    options = {"hoodie.aws.access.key": "tests", GLUE_KEY: "not-to-be-shown", GLUE_ENDPOINT: moto.endpoint}
    options[GLUE_REGION] = "eu-north-1"
    database = f"lake_{uuid4().hex}"
    table = _synced(tmp_path / "trips", "glue", database, options)

    by_name = Table.open(f"glue://{database}.Trips", options)
    assert (by_name.uri, by_name.snapshot().count()) == (table.uri, 2)
    catalog = Catalog.connect("glue", options)
    assert catalog.list_tables(database) == (f"{database}.trips",)
    assert {catalog.load_table(f"{database}.{name}").uri for name in ("trips", "trips_ro", "trips_rt")} == {table.uri}
    assert "not-to-be-shown" not in repr(catalog)

    _write(settings, "glue", options)
    assert Catalog.connect().list_tables(database) == (f"{database}.trips",)
    assert run_json("show", f"{database}.trips")["table"]["uri"] == f"file://{table.uri}"
    assert run_json("read", f"{database}.trips", "--limit", 1)["rows"]


@pytest.mark.slow
def test_a_table_of_a_hive_metastore_is_found_by_its_name(
    hive_metastore: HiveMetastoreServer, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = "by_name"
    options = {str(METASTORE_URIS): hive_metastore.uri}
    at = ("--option", f"{METASTORE_URIS}={hive_metastore.uri}")
    table = _synced(tmp_path / "trips", "hive", database, options)
    assert Table.open("hive://by_name.trips", options).uri == table.uri
    assert Catalog.connect("hive", options).list_tables(database) == ("by_name.trips",)

    assert run_json("show", "by_name.trips", "--catalog", "hive", *at)["table"]["uri"] == f"file://{table.uri}"
    monkeypatch.setenv("EVENTIDE_CATALOG", "hive")
    assert run_json("freshness", "by_name.trips", *at)
    _write(settings, "glue", options)  # the environment takes precedence
    table.upsert(rows(("k2", -9, "base")))
    assert run_json("read", "by_name.trips")["rows"] == 3

    with pytest.raises(NotAHudiTableError, match=r"'by_name' has no such table; did you mean by_name.trips\?"):
        Table.open("hive://by_name.tripz", options)
    with pytest.raises(NotAHudiTableError, match="no database 'absent'"):
        Table.open("hive://absent.trips", options)
    missing = run("show", "by_name.nothing", *at)
    assert (missing.exit_code, "by_name.nothing" in missing.stderr) == (2, True)


def test_without_a_catalog_a_name_is_a_path(settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("lake.trips"), 9)
    assert run_json("show", "lake.trips")["table"]["name"] == "lake_trips"
    _write(settings, "hive", {METASTORE_URIS: f"thrift://127.0.0.1:{free_ports(1)[0]}"})
    assert run("show", "lake.trips").exit_code == 5
    assert run("show", "./lake.trips").exit_code == 0
    with pytest.raises(CatalogError, match="no Hive Metastore responds"):
        Catalog.connect()


def test_the_secrets_of_the_settings_are_not_shown(settings: Path) -> None:
    _write(settings, "hive", {METASTORE_URIS: "nonsense-of-secret-value", GLUE_KEY: "secret-value"})
    answer = run("show", "lake.trips")
    assert answer.exit_code == 2
    assert "secret-value" not in answer.stderr + answer.stdout
    assert METASTORE_URIS in answer.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hive://lake",), "hive://lake does not name a table: write hive://DATABASE.TABLE"),
        (("datahub://lake.trips",), "datahub does not say where tables are"),
        (("/lake/trips", "--catalog", "hive"), "--catalog is for a TABLE of the form DATABASE.TABLE"),
        (("hive://lake.trips", "--catalog", "glue"), "--catalog is for a TABLE of the form DATABASE.TABLE"),
        (("lake.trips", "--catalog", "nowhere"), "catalog 'nowhere' is not supported: use hive, glue"),
    ],
)
@pytest.mark.usefixtures("settings")
def test_what_names_no_table_is_refused(words: tuple[str, ...], said: str) -> None:
    answer = run("show", *words)
    assert answer.exit_code == 2
    assert said in answer.stderr.replace("\n", " ")


@pytest.mark.parametrize("text", ["catalog = 3", "catalogue = 'hive'", "options = 'hive'", "catalog ="])
def test_settings_of_another_form_are_refused(text: str, settings: Path) -> None:
    settings.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"settings file .*eventide\.toml"):
        Catalog.connect()


@pytest.mark.usefixtures("settings")
def test_a_catalog_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="no catalog is named: pass hive or glue"):
        Catalog.connect()
    with pytest.raises(ConfigError, match="catalog 'nowhere' is not supported"):
        Catalog.connect("nowhere")


@pytest.mark.parametrize("place", ["environment", "file"])
def test_an_unknown_catalog_of_the_settings_is_refused(
    place: str, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "environment":
        monkeypatch.setenv("EVENTIDE_CATALOG", "nowhere")
    else:
        _write(settings, "nowhere", {})
    answer = run("show", "lake.trips")
    assert answer.exit_code == 2
    assert "catalog 'nowhere' is not supported: use hive, glue" in answer.stderr
