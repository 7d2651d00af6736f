"""The types of an Avro schema as JSON has them: a name, a definition, or a union of these."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any


def is_union(kind: object) -> bool:
    return isinstance(kind, list)


def is_defined(kind: object) -> bool:
    """Whether the type is more than a name."""
    return isinstance(kind, Mapping)


def branches(kind: Any) -> list[Any]:
    """The types in a union; another type, alone."""
    return list(kind) if is_union(kind) else [kind]


def vector_definitions(kinds: Iterable[Any]) -> dict[str, Any]:
    """The definitions of vectors in these types by their names, the last of each name."""
    defined = (branch for branch in chain.from_iterable(map(branches, kinds)) if is_defined(branch))
    return {kind["name"]: kind for kind in defined if kind.get("logicalType") == "vector" and not kind.get("namespace")}


def define_vectors_once(fields: Sequence[dict[str, Any]], vectors: Mapping[str, Any]) -> None:
    """Has the first field of a vector type define it, and the others name it: Avro refuses any other order."""
    defined: set[str] = set()

    def once(branch: Any) -> Any:
        name = str(branch.get("name") if is_defined(branch) else branch)
        if name not in vectors:
            return branch
        is_first = name not in defined
        defined.add(name)
        return vectors[name] if is_first else name

    for field in fields:
        kind = field["type"]
        field["type"] = [once(branch) for branch in kind] if is_union(kind) else once(kind)
