"""The command-line reference, from the verbs' own parsers."""

from collections.abc import Sequence

import click

from eventide.cli.app import VERBS, eventide

_HEAD = """# Command line

<!-- Made by `./run docs` from the verbs in spark_app/eventide/cli: change it there. -->

"""

_COMPLETION = """## Shell completion

In bash, run `eval "$(_EVENTIDE_COMPLETE=bash_source eventide)"`, or put that line into `~/.bashrc`. In zsh, use
`zsh_source`. In fish, run `_EVENTIDE_COMPLETE=fish_source eventide | source`."""

# The options that `common_options` gives each verb, described only once.
_COMMON = ("config", "option", "engine", "master", "output", "quiet", "debug")


def command_line_page() -> str:
    """The group's help text, the options of every verb, and a section for each verb."""
    verbs = [_verb(name) for name in VERBS]
    common = [parameter for parameter in verbs[0].params if parameter.name in _COMMON]
    assert [parameter.name for parameter in common] == list(_COMMON)
    parts = [_HEAD + _words(eventide), "## Options of every verb", _table(common), _COMPLETION]
    return "\n\n".join([*parts, *(_section(*found) for verb in verbs for found in _commands(verb))]) + "\n"


def _verb(name: str) -> click.Command:
    verb = eventide.get_command(click.Context(eventide), name)
    assert verb is not None
    return verb


def _commands(verb: click.Command) -> list[tuple[str, click.Command]]:
    """The verb by its name; of a group, its commands."""
    if isinstance(verb, click.Group):
        return [(f"{verb.name} {name}", command) for name, command in verb.commands.items()]
    return [(str(verb.name), verb)]


def _section(name: str, verb: click.Command) -> str:
    own = [found for found in verb.params if isinstance(found, click.Option) and found.name not in _COMMON]
    arguments = "".join(f" {found.make_metavar(click.Context(verb))}" for found in verb.params if _is_argument(found))
    parts = [f"## {name}", f"`eventide {name}{arguments}`", _words(verb), _table(own)]
    return "\n\n".join(part for part in parts if part)


def _is_argument(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Argument)


def _words(verb: click.Command) -> str:
    paragraphs = (verb.help or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _table(parameters: Sequence[click.Parameter]) -> str:
    options = [parameter for parameter in parameters if isinstance(parameter, click.Option)]
    if not options:
        return ""
    return "| option | does |\n|---|---|\n" + "\n".join(_row(option) for option in options)


def _row(option: click.Option) -> str:
    context = click.Context(click.Command(""))
    record = option.get_help_record(context)
    assert record is not None
    names, does = (" ".join(text.split()).replace("|", "\\|").replace("] [", "; ") for text in record)
    return f"| `{names}` | {does} |"
