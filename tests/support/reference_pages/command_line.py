"""The command-line reference, from the verbs' own parsers."""

from collections.abc import Iterable, Mapping, Sequence

import click

from eventide.cli.app import VERBS, eventide

_MADE = "<!-- Made by `./run docs` from the verbs in spark_app/eventide/cli: change it there. -->"
# The pages of the verbs, by their room in spark_app/eventide/cli.
_PAGES = {"rows": "Rows and windows", "compaction": "Compaction and freshness", "maintenance": "Maintenance"}

_COMPLETION = """## Shell completion

In bash, run `eval "$(_EVENTIDE_COMPLETE=bash_source eventide)"`, or put that line into `~/.bashrc`. In zsh, use
`zsh_source`. In fish, run `_EVENTIDE_COMPLETE=fish_source eventide | source`."""

# The options that `common_options` gives each verb, described only once.
_COMMON = ("config", "option", "engine", "master", "output", "quiet", "debug")


def command_line_pages() -> dict[str, str]:
    """The group's help text with the options of every verb, and a page for the verbs of each room."""
    verbs = {name: _verb(name) for name in VERBS}
    common = [parameter for parameter in verbs["demo"].params if parameter.name in _COMMON]
    assert [parameter.name for parameter in common] == list(_COMMON)
    rooms = {room: [verbs[name] for name in VERBS if VERBS[name][0].startswith(f"{room}.")] for room in _PAGES}
    assert sum(map(len, rooms.values())) == len(VERBS)
    parts = ["# Command line", _MADE, _words(eventide), _contents(rooms), "## Options of every verb", _table(common)]
    pages = {"command_line.md": [*parts, _COMPLETION]}
    for room, title in _PAGES.items():
        sections = [_section(*found) for verb in rooms[room] for found in _commands(verb)]
        head = [
            f"# Command line: {title[0].lower()}{title[1:]}",
            _MADE,
            "Options of every verb: [Command line](command_line.md).",
        ]
        pages[_file_of(room)] = [*head, *sections]
    return {name: "\n\n".join(parts) + "\n" for name, parts in pages.items()}


def _file_of(room: str) -> str:
    return f"command_line_{room}.md"


def _contents(rooms: Mapping[str, Iterable[click.Command]]) -> str:
    """The verbs of each page, with links."""
    rows = ["| page | verbs |", "|---|---|"]
    for room, verbs in rooms.items():
        names = [name for verb in verbs for name, _ in _commands(verb)]
        links = ", ".join(f"[{name}]({_file_of(room)}#{name.replace(' ', '-')})" for name in names)
        rows.append(f"| [{_PAGES[room]}]({_file_of(room)}) | {links} |")
    return "\n".join(rows)


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
