"""Cures in messages: a Python caller reads the call, and others read the value back from it."""

import inspect
from collections.abc import Callable
from typing import Any

import click
import pytest

from eventide import Table
from eventide.cli.app import eventide
from eventide.cli.cures import COMMANDS, command, in_commands
from eventide_core.cure import Cure, in_words
from eventide_core.errors import RefusedError

T = "20261121093000000"
CURES = (
    (Cure.rollback(T), f'table.rollback("{T}")', f"rollback TABLE {T}"),
    (Cure.rollback(T, force=True), f'table.rollback("{T}", force=True)', f"rollback TABLE {T} --force"),
    (Cure.execute(T), f'table.execute("{T}")', f"compact TABLE --execute {T}"),
    (Cure.execute(T, force=True), f'table.execute("{T}", force=True)', f"compact TABLE --execute {T} --force"),
    (Cure.restore(T), f'table.restore("{T}")', f"restore TABLE {T}"),
    (Cure.delete_savepoint(T), f'table.delete_savepoint("{T}")', f"savepoint TABLE {T} --delete"),
    (Cure.clean(), "table.clean()", "clean TABLE"),
    (Cure.history(), "table.history()", "show TABLE"),
    (Cure.verify_deep(), "table.verify(deep=True)", "verify TABLE --deep"),
    (Cure.repair(), "table.repair()", "repair TABLE"),
    (Cure.recover_settings("s3://b/t"), 'Table.recover_settings("s3://b/t")', "repair TABLE"),
    (Cure.lost_keys(), "table.lost_keys()", "repair TABLE --lost-keys FILE"),
    (Cure.rebuild_metadata_table(), "table.rebuild_metadata_table()", "metadata TABLE --rebuild"),
    (
        Cure.rebuild_metadata_table("column_stats", "record_index"),
        'table.rebuild_metadata_table(indexes=["column_stats", "record_index"])',
        "metadata TABLE --rebuild --index column_stats --index record_index",
    ),
    (
        Cure.rebuild_metadata_table_without_indexes(),
        "table.rebuild_metadata_table(indexes=[])",
        "metadata TABLE --rebuild --index files",
    ),
)
ARGUMENTS: tuple[tuple[Cure, str, str, str, Callable[..., Any]], ...] = (
    (Cure.argument("sanitize"), "sanitize=True", "--sanitize", "ingest", Table.create),
    (Cure.argument("schema_mode", "merge"), 'schema_mode="merge"', "--add-columns", "ingest", Table.upsert),
    (Cure.argument("columns", "partial"), 'columns="partial"', "--columns partial", "ingest", Table.upsert),
    (Cure.argument("renew"), "renew=True", "--renew", "windows", Table.windows),
    (Cure.argument("take_over"), "take_over=True", "--take-over", "windows", Table.windows),
    (Cure.argument("before", "T"), 'before="T"', "--before T", "compact", Table.compact),
)


@pytest.mark.parametrize(("cure", "call", "words"), CURES)
def test_each_reader_can_type_what_a_message_names(cure: Cure, call: str, words: str) -> None:
    assert (str(cure), command(cure)) == (f"`{call}`", f"`eventide {words}`")
    assert cure.method is not None
    method, arguments = getattr(Table, cure.method), dict(cure.arguments)
    is_static = not hasattr(method, "__self__") and isinstance(inspect.getattr_static(Table, cure.method), staticmethod)
    inspect.signature(method).bind(
        *(() if is_static else (None,)), *([cure.subject] if cure.subject else []), **arguments
    )
    verb, *rest = words.split()
    known = eventide.get_command(click.Context(eventide), verb)
    assert known is not None
    known.make_parser(click.Context(known)).parse_args(rest)  # refuses unknown options


@pytest.mark.parametrize(("cure", "argument", "option", "verb", "call"), ARGUMENTS)
def test_an_argument_is_an_option(cure: Cure, argument: str, option: str, verb: str, call: Callable[..., Any]) -> None:
    assert (str(cure), command(cure)) == (f"`{argument}`", f"`{option}`")
    assert cure.arguments[0][0] in inspect.signature(call).parameters
    known = eventide.get_command(click.Context(eventide), verb)
    assert known is not None
    known.make_parser(click.Context(known)).parse_args(option.split())


def test_every_command_is_of_a_method() -> None:
    assert [method for method in COMMANDS if not hasattr(Table, method)] == []


@pytest.mark.parametrize("cure", [cure for cure, *_ in (*CURES, *ARGUMENTS)])
def test_a_cure_is_read_back_from_its_text(cure: Cure) -> None:
    assert Cure.parse(str(cure)) == cure
    error = RefusedError(f"it was refused; run {cure}, and again")
    assert in_words(str(error), lambda found: repr(found == cure)) == "it was refused; run True, and again"


def test_documents_name_no_instant() -> None:
    assert in_commands("use `table.rollback(instant)`") == "use `eventide rollback TABLE INSTANT`"
    assert in_commands("use `Table.create(uri)`") == "use `eventide ingest TABLE SOURCE --create`"


@pytest.mark.parametrize(
    "text",
    ["`table.unheard_of()`", "`table.rollback(`", "`table.rollback(1 +)`", "`table.rollback(f(x))`", "`x=y`", "a`b"],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert in_commands({"text": [text, 1, None, (text,)]}) == {"text": [text, 1, None, [text]]}
