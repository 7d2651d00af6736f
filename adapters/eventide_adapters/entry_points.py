"""Adapters by name: the built-in ones, and the ones of installed packages.

A package declares an adapter as an entry point, NAME = "module:factory". pyproject.toml declares the built-in ones in the
same way: it is the one table of all adapters. A lookup takes the built-in ones from the copy of that table in each
`open.py`, and reads the metadata of the installed packages only for other names, because that takes as long as a start.
A package cannot replace a built-in adapter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from eventide_core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter. `factory` is MODULE:FACTORY. `package` has it, with its version; None for a built-in one."""

    name: str
    factory: str
    package: str | None = None

    def load(self) -> Callable[..., Any]:
        """The factory. Raises ConfigError if the package cannot be imported."""
        try:
            return loaded(self.factory)
        except Exception as failure:  # whatever the code of others raises when it is imported
            if self.package is None:
                raise
            raise ConfigError(
                f"the package {self.package} declares {self.name} as {self.factory}, which cannot be loaded: "
                f"{type(failure).__name__}: {failure}; install the package again, or remove it"
            ) from failure


@dataclass(frozen=True, slots=True)
class Adapters:
    """The adapters of one kind. `group` is the group of their entry points, `built_in` maps names to MODULE:FACTORY."""

    group: str
    built_in: Mapping[str, str]

    def find(self, name: str) -> Adapter | None:
        """The adapter of that name. Raises ConfigError if several packages have it."""
        if name in self.built_in:
            return Adapter(name, self.built_in[name])
        # Imported here, because this takes longer than most starts.
        from importlib.metadata import entry_points

        points = tuple(entry_points(group=self.group, name=name))
        packages = {f"{point.dist.name} {point.dist.version}" if point.dist else point.value for point in points}
        if len(packages) > 1:
            raise ConfigError(
                f"several packages declare {name} in {self.group}: remove all of {sorted(packages)} but one"
            )
        return Adapter(name, points[0].value, packages.pop()) if points else None

    def names(self) -> tuple[str, ...]:
        """The names of all adapters: the built-in ones, then the ones of packages."""
        from importlib.metadata import entry_points

        return *self.built_in, *sorted({point.name for point in entry_points(group=self.group)} - set(self.built_in))


def loaded(factory: str) -> Callable[..., Any]:
    """What MODULE:FACTORY names. Raises what its import raises, AttributeError or ValueError."""
    module_name, _, name = factory.partition(":")
    return cast(Callable[..., Any], getattr(import_module(module_name), name))
