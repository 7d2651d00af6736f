"""Makes deploy/eventide.cdx.json, what the wheel contains and needs, as CycloneDX: `python -m support.documentation.sbom`.

The wheel carries it in `.dist-info/sboms` (PEP 770). It has no time and no serial number, so that a build can be repeated.
"""

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
FILE = ROOT / "deploy/eventide.cdx.json"
_LICENSES = [{"license": {"id": "Apache-2.0"}}]
# Files of the wheel that are another project's, by pattern: the project, and what they are.
_OF_OTHERS = {
    "adapters/eventide_adapters/format/schemas/*.avsc": ("Apache Hudi", "Avro schema"),
    "adapters/eventide_adapters/catalog/hive_metastore.thrift": ("Apache Hive", "part of the metastore's interface"),
}


def document() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    needed = sorted(re.split(r"[<>=!~\[; ]", requirement)[0] for requirement in project["dependencies"])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": name,
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name}@{version}",
                "licenses": _LICENSES,
            }
        },
        "components": [
            *(_file(path, *of) for pattern, of in _OF_OTHERS.items() for path in sorted(ROOT.glob(pattern))),
            *({"type": "library", "bom-ref": one, "name": one, "purl": f"pkg:pypi/{one}"} for one in needed),
        ],
        "dependencies": [{"ref": name, "dependsOn": needed}],
    }


def _file(path: Path, project: str, what: str) -> dict[str, Any]:
    return {
        "type": "file",
        "name": "/".join(path.relative_to(ROOT).parts[1:]),
        "description": f"{what} of {project}",
        "supplier": {"name": "The Apache Software Foundation"},
        "licenses": _LICENSES,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
    }


def text() -> str:
    return f"{json.dumps(document(), indent=1)}\n"


if __name__ == "__main__":
    FILE.write_text(text())
