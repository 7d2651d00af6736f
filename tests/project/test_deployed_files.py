"""What `deploy/` has is valid, and uses metrics and options that eventide has."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from eventide.cli.compaction.serve import serve
from eventide.options.sections import all_options
from eventide_core.action.compaction.backlog import Backlog
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.service.common.facts.compaction_history import KeptBytes, PastCompaction
from eventide_core.service.query.metrics import table_metrics
from eventide_core.table.settings.metadata_table import MetadataTableStatus
from eventide_core.table.timeline.instant import instant_epoch_ms
from support.run.real_parts import require_or_skip

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = re.compile(r"\beventide_(\w+)")
LABELS = {"table", "reason"}


def exported() -> set[str]:
    """The names of all metrics, without the prefix."""
    compaction = PastCompaction(
        instant="20260101000000000",
        completed_ms=2,
        duration_ms=1,
        link_mode="copy",
        cut_ms=1,
        watermark_ms=1,
        late_records=0,
        slices=1,
        fallbacks={},
        linked_bytes={},
        carried_tombstones=0,
        carried_bytes={},
    )
    fresh = Freshness(1, 1, 0, 0, 1)
    logs = Backlog(file_slices=1, log_files=1, bytes=1, min_event_time_ms=1)
    status = MetadataTableStatus(("files",), 1, "20260101000000000")
    return {
        metric.name
        for metric in table_metrics(fresh, logs, KeptBytes(0, 0), (compaction,), status, 3, moment_of=instant_epoch_ms)
    }


def check_expression(text: str) -> None:
    names = NAME.findall(text)
    assert names, text
    assert set(names) <= exported(), text
    assert text.count("(") == text.count(")"), text
    assert set(re.findall(r"(\w+)=~?\"", text)) <= LABELS, text


def test_the_alert_rules_use_metrics_that_exist() -> None:
    content: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus" / "eventide.rules.yml").read_text())
    rules = [rule for group in content["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 3
    for rule in rules:
        check_expression(rule["expr"])
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "description"}
        used = re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values()))
        assert set(used) <= LABELS


def test_the_dashboard_uses_metrics_that_exist() -> None:
    content: dict[str, Any] = json.loads((DEPLOY / "grafana" / "eventide.json").read_text())
    assert len({panel["id"] for panel in content["panels"]}) == len(content["panels"]) >= 6
    places: set[tuple[int, int]] = set()
    for panel in content["panels"]:
        assert panel["datasource"]["uid"] == "${datasource}"
        places.add((panel["gridPos"]["x"], panel["gridPos"]["y"]))
        for target in panel["targets"]:
            check_expression(target["expr"])
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= LABELS
    assert len(places) == len(content["panels"]), "two panels in one place"
    assert {variable["name"] for variable in content["templating"]["list"]} == {"datasource", "table"}


def words_of_the_unit() -> list[str]:
    lines = (DEPLOY / "systemd" / "eventide@.service").read_text().splitlines()
    (command,) = (line.partition("=")[2] for line in lines if line.startswith("ExecStart="))
    return command.split()


def words_of_the_pod() -> list[str]:
    manifest: dict[str, Any] = yaml.safe_load((DEPLOY / "kubernetes" / "eventide.yaml").read_text())
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    return [*container["command"], *container["args"]]


@pytest.mark.parametrize("words", [words_of_the_unit(), words_of_the_pod()], ids=["systemd", "Kubernetes"])
def test_a_deployed_service_has_options_that_exist(words: list[str]) -> None:
    assert (Path(words[0]).name, words[1]) == ("eventide", "serve")
    known = {name for parameter in serve.params for name in parameter.opts}
    given = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert given
    assert set(given) <= known
    for word in words:
        key = word.removeprefix("--option=").partition("=")[0]
        assert not word.startswith("--option=") or key in {name for option in all_options() for name in option.names}


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        require_or_skip("systemd-analyze is missing here: apt-get install systemd")
    unit = tmp_path / "eventide@.service"
    text = (DEPLOY / "systemd" / unit.name).read_text()
    unit.write_text(text.replace("/opt/eventide/bin/eventide", sys.executable))  # it has to be there
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    of_the_unit = [line for line in done.stderr.splitlines() if "eventide" in line]  # others are of the machine's units
    assert (done.returncode, of_the_unit) == (0, [])


def test_kubernetes_takes_the_deployment() -> None:
    manifest = yaml.safe_load((DEPLOY / "kubernetes" / "eventide.yaml").read_text())
    assert kubernetes_validate.validate(manifest, "1.31", strict=True) == "1.31"
