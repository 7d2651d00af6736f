"""The options that all verbs share, and how they combine."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from eventide import Table
from eventide.catalog import located, tool_of
from eventide.cli.argument_types import NAME, PARTITION, FilePath
from eventide.cli.console import Console
from eventide.cli.engine_by_size import EngineBySize, quiet_session
from eventide.cli.json_log import JSON_LOG
from eventide.cli.own_process import hide_pandas
from eventide.cli.redaction import Redaction
from eventide.options.sections import warn_of_options
from eventide.options.user_settings import flat_options, toml_document, user_settings
from eventide.results.detail import Detail
from eventide_adapters.extras import install_command
from eventide_adapters.metrics.open import open_tracer
from eventide_core.config import EMPTY_VARIABLE, EVENT_TIME_FIELD, Option
from eventide_core.errors import ConfigError
from eventide_core.ports import Engine, NoTracer
from eventide_core.table.catalog.table_name import TableName
from eventide_core.table.files.table_path import HOODIE_DIRECTORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMMON_OPTIONS = (
    click.option(
        "--config",
        type=FilePath(),
        metavar="FILE.toml",
        help="Reads options from a file: from its table [options], or from its top level.",
    ),
    click.option(
        "--option",
        multiple=True,
        metavar="KEY=VALUE",
        help="Sets an option of Hudi, of eventide, or of the storage. Repeatable.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["auto", "local", "spark"]),
        default="auto",
        help="Where tasks run: on threads of this process, or on Spark. auto: compact and serve use Spark for large work.",
    ),
    click.option("--master", type=NAME, metavar="URL", help="The Spark master, such as local[4] or yarn."),
    click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Text for people, or one JSON document on stdout.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        expose_value=False,
        help="What goes to stderr: text for people, or one JSON object a line.",
    ),
    click.option("--quiet", is_flag=True, help="Prints only the result or an error."),
    click.option("--debug", is_flag=True, help="Shows the stack trace of an error, and the log of Spark."),
)


def option_help(option: Option[Any]) -> str:
    """The `--help` text of a command-line option that stands for an option: the same as on the reference page."""
    default = option.otherwise or option.default_text
    return option.doc + (f"  [default: {default}]" if default else "")


_CATALOG: Final = "eventide.catalog"  # the key of --catalog in the context of a run


def table_verb(verb: Callable[..., Any]) -> click.Command:
    """Makes a verb of TABLE: a path, a URI, or a name in a catalog, which `common_options` turns into the location."""

    def keep(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
        ctx.meta[_CATALOG] = value

    catalog = click.option(
        "--catalog",
        metavar="NAME",
        expose_value=False,
        callback=keep,
        help="hive, glue, or the name of a package's: where TABLE is, as DATABASE.TABLE.  [default: by the user's settings]",
    )
    return click.command()(click.argument("table")(catalog(verb)))


_STATED: Final = "eventide.stated"  # the options that the verb's own arguments state, in the context of a run


def stating(option: Option[Any], *names: str, **attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A command-line option that states an option of eventide: `common_options` adds it to the options of `settings`."""

    def keep(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            ctx.meta.setdefault(_STATED, {})[option] = str(value).lower() if isinstance(value, bool) else str(value)

    return click.option(*names, expose_value=False, callback=keep, **{"help": option_help(option), **attributes})


def decorated(verb: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """The verb with these options, which its help lists in their order."""
    return functools.reduce(lambda made, decorate: decorate(made), reversed(options), verb)


event_time_option = stating(EVENT_TIME_FIELD, "--event-time", metavar="FIELD")


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of a run besides its verb's.

    `options` are by key: of the file that `--config` names, of repeated `--option`, and of the verb's own arguments.
    `engine` is auto, local or spark; `master` is the Spark master, which makes auto mean Spark, or None. `is_debug`: the log
    of Spark goes to stderr. `console` prints for people, or as JSON if the user asked for it.
    """

    options: Mapping[str, str]
    engine: str
    master: str | None
    is_debug: bool
    console: Console

    def having(self, key: str, value: str | None) -> "Settings":
        """A copy with one more option, unless its value is None. Raises ConfigError for an empty one."""
        if value is not None and not value.strip():
            raise ConfigError(f"option {key} is given without a value: omit it, or pass one {EMPTY_VARIABLE}")
        return self if value is None else replace(self, options={**self.options, key: value})

    @property
    def wants_spark(self) -> bool:
        """Whether the user requested Spark."""
        return self.engine == "spark" or (self.engine == "auto" and self.master is not None)

    def _check_engine(self) -> None:
        if self.wants_spark and not _has_spark():
            raise ConfigError(
                f"the engine spark needs PySpark: run `{install_command('spark')}`, or use --engine local"
            )

    @contextmanager
    def session(self, *, by_default: bool = False) -> Iterator["SparkSession | None"]:
        """A SparkSession for the duration of a run; None on the local engine. `by_default`: on auto, too.

        Raises ConfigError if Spark is required and not installed.
        """
        if not self.wants_spark and (self.engine == "local" or not by_default or not _has_spark()):
            hide_pandas()
            yield None
            return
        self._check_engine()
        self.console.say("starting Spark")
        with quiet_session(self.master, is_loud=self.is_debug) as spark:
            yield spark

    @contextmanager
    def table(self, uri: str) -> Iterator[Table]:
        """The table, on the configured engine. Reports errors of the table before Spark starts."""
        table = Table.open(uri, self.options)
        with self.session() as spark:
            yield table if spark is None else Table.open(uri, self.options, engine=spark)

    def spark_engine(self, running: ExitStack) -> Engine | None:
        """Starts Spark's engine, until `running` ends; None on the local engine, or if no engine is set without PySpark."""
        spark = running.enter_context(self.session(by_default=True))
        if spark is None:
            return None
        # Imported here: the local engine works without PySpark.
        from eventide.spark.engine import SparkEngine

        return SparkEngine(spark)

    @contextmanager
    def engine_by_size(self) -> Iterator[EngineBySize]:
        """The engine of compactions: Spark for large ones, if it is installed and no other engine is set.

        Raises ConfigError if Spark is required and not installed.
        """
        self._check_engine()
        has_spark = self.wants_spark or (self.engine == "auto" and _has_spark())
        with ExitStack() as running:

            def start() -> Engine:
                engine = self.spark_engine(running)
                assert engine is not None
                return engine

            yield EngineBySize(start if has_spark else None, self.console.say, is_fixed=self.wants_spark)


def _has_spark() -> bool:
    return find_spec("pyspark") is not None


def common_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that all verbs share, and passes them to the verb as `settings`."""

    @functools.wraps(verb)
    def run(
        config: Path | None,
        option: Sequence[str],
        engine: str,
        master: str | None,
        output: str,
        quiet: bool,
        debug: bool,
        **words: Any,
    ) -> Any:
        options = {**(_of_file(config) if config is not None else {}), **pairs_of(option, "--option", last_wins=True)}
        context = click.get_current_context()
        redaction = context.find_object(Redaction) or Redaction()
        redaction.add(options)
        if words.get("table") is not None:
            words["table"], options = _located(words["table"], context.meta.get(_CATALOG), options, redaction)
        for number, other in enumerate(words.get("others", ())):
            uri, options = _located(other, context.meta.get(_CATALOG), options, redaction)
            words["others"] = (*words["others"][:number], uri, *words["others"][number + 1 :])
        table, log = words.get("table"), JSON_LOG.get()
        about = None if table is None else redaction.clean(table)
        if log is not None:
            log.table = about
        console = Console(is_json=output == "json", is_quiet=quiet)
        warn_of_options(options)
        settings = Settings(options, engine, master, debug, console)
        for key, value in context.meta.get(_STATED, {}).items():
            settings = settings.having(key, value)
        # A service has a trace for each round: its own would not end.
        tracer = NoTracer() if context.info_name == "serve" else open_tracer()
        with tracer.span(f"eventide {context.info_name}", table=about or ""):
            return verb(settings, **words)

    return decorated(run, _COMMON_OPTIONS)


def _located(
    table: str, catalog: str | None, options: dict[str, str], redaction: Redaction
) -> tuple[str, dict[str, str]]:
    """The location of TABLE, and the options to open it with; a path or a URI as it is. Raises what `located` does."""
    name = TableName.parse(table)
    if catalog is not None and (name is None or name.catalog is not None):
        raise click.UsageError(f"--catalog is for a TABLE of the form DATABASE.TABLE, not {table}")
    if name is None:
        return located(table, options)
    settings = user_settings()
    redaction.add(settings.options)
    in_catalog = catalog or settings.catalog
    if name.catalog is not None or in_catalog is None:
        return located(table, options)
    tool_of(in_catalog)
    return located(f"{in_catalog}://{name.qualified}", options)


def _detailed(whole: str, of_partition: str, at_most: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options that select what a verb's text shows, and passes them to the verb as `detail`."""
    options = (
        click.option("--verbose", "-v", is_flag=True, help=whole),
        click.option("--partition", type=PARTITION, metavar="P", help=of_partition),
        click.option("--limit", type=click.IntRange(min=0), metavar="N", help=at_most),
    )

    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(verb)
        def run(*args: Any, verbose: bool, partition: str | None, limit: int | None, **words: Any) -> Any:
            # The completion of a shell ends a directory with a slash.
            chosen = None if partition is None else partition.rstrip("/") or partition
            return verb(*args, detail=Detail(verbose, chosen, limit), **words)

        return decorated(run, options)

    return add


detail_options = _detailed(
    "Shows the files of every file slice.",
    "Shows the files of the file slices of this partition.",
    "Shows the files of at most N file slices.",
)
finding_options = _detailed(
    "Shows every finding.",
    "Shows the findings in files of this partition.",
    "Shows at most N findings of each check.",
)


def check_partition(table: Table, detail: Detail) -> None:
    """Raises UsageError for a partition that the table does not have: there would be nothing to show of it."""
    partition = detail.partition
    if partition is None:
        return
    place = table._application.storage.stat(partition)
    if place is None or not place.is_directory or partition.partition("/")[0] == HOODIE_DIRECTORY:
        raise click.UsageError(f"no partition {partition!r} in {table.uri}: give the name of its directory")


def pairs_of(words: Sequence[str], option: str, *, last_wins: bool = False) -> dict[str, str]:
    """The KEY=VALUE words of a repeatable option.

    Raises UsageError, naming `option`, for another form, and for a key that comes twice, unless the last one wins.
    """
    options: dict[str, str] = {}
    for number, word in enumerate(words, start=1):
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            # The argument itself may be a secret.
            raise click.UsageError(f"{option} number {number} does not have the form KEY=VALUE")
        if key.strip() in options and not last_wins:
            raise click.UsageError(f"{option}: {key.strip()!r} comes twice: remove one")
        options[key.strip()] = value
    return options


def _of_file(path: Path) -> dict[str, str]:
    document = toml_document(path, "config file")
    options = document.get("options", document)
    wrong = [key for key, value in document.items() if isinstance(value, dict) and get_close_matches(key, ["options"])]
    if options is document and wrong:
        raise ConfigError(f"config file {path}: the table [{wrong[0]}] is none of eventide's; did you mean [options]?")
    if not isinstance(options, dict):
        raise ConfigError(f"config file {path}: options is not a table")
    return dict(flat_options(options, f"config file {path}"))
