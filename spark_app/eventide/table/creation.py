"""Tables that their first commit creates: nobody sees a table before, and a write that fails leaves none."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from eventide.bootstrap import Application, assemble
from eventide.options import new_tables as keys
from eventide.rows.own_place import require_own_place
from eventide.rows.writer import new_table
from eventide.table.table import Table
from eventide_adapters.storage.open import open_storage
from eventide_core.config import EVENT_TIME_FIELD, Options
from eventide_core.cure import Cure
from eventide_core.errors import NotAHudiTableError, RefusedError
from eventide_core.ports import Engine
from eventide_core.table.settings.properties import PROPERTIES_PATH, known_settings


def existing_table(uri: str, options: Mapping[str, str], *, may_be_absent: bool) -> Table | None:
    """The table; None if there is none and that is allowed. Raises NotAHudiTableError, also for damaged settings."""
    try:
        return Table.open(uri, options)
    except NotAHudiTableError:
        if not may_be_absent or open_storage(uri, Options(dict(options))).stat(PROPERTIES_PATH) is not None:
            raise
    return None


def created_by_first_commit(
    uri: str, schema: pa.Schema | str, options: Mapping[str, str], words: Mapping[str, Any], engine: Engine | None
) -> Application:
    """The application of a table that does not exist yet. `words` are the fields, named as in `Table.create`.

    Raises ConfigError and what else `Table.create` raises; RefusedError if the path has commits of a table whose settings
    are lost, which would come back.
    """
    made = new_table(uri, schema, options, version=None, **words)
    require_own_place(uri, Options(options))
    application = assemble(uri, options, engine=engine)
    application.files.first_settings = made.properties()
    if application.state().timeline.writes:
        raise RefusedError(
            f"{uri} has commits, but its {PROPERTIES_PATH} is lost: {Cure.recover_settings(uri)} makes it again; or choose "
            "another path"
        )
    return application


def written_by_spark(
    uri: str, schema: pa.Schema, options: Mapping[str, str], *, engine: Engine | None = None
) -> Application:
    """The application for a write of rows with that schema. If the options name a record key, the path may have no table."""
    typed = Options(options)
    record_key = typed.get(keys.RECORD_KEY)
    application = assemble(uri, options, engine=engine)
    if record_key is None or known_settings(application.storage.read_range, uri) is not None:
        return application
    words = {
        "record_key": record_key,
        "partition": typed.get(keys.PARTITION_PATH),
        "ordering": typed.get(keys.ORDERING),
        "event_time": typed.get(EVENT_TIME_FIELD),
    }
    return created_by_first_commit(uri, schema, options, words, engine)
