"""Opens what is told that windows are done, by its address."""

from datetime import tzinfo

from eventide_adapters.markers.calls import MarkerCalls
from eventide_adapters.markers.files import MarkerFiles
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.secret_texts import refuse_user_info
from eventide_core.config import MARKER_SECRET, MARKER_TO, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import MarkerTarget, Storage
from eventide_core.table.timeline.outcome_file import OUTCOME_DIRECTORY


def open_target(options: Options, table: Storage, marker: str, name: str, zone: tzinfo) -> MarkerTarget:
    """The URL to call, or the files below an address; below the table's `.hoodie` without an address.

    `name` and `zone` are those of files, `marker` names the marker in events. Raises ConfigError for an address that can't
    be one, or that contains a user or a secret.
    """
    address, secret = options.get(MARKER_TO), options.get(MARKER_SECRET)
    if address is not None and address.startswith(("http://", "https://")):
        refuse_user_info(address, str(MARKER_TO))
        return MarkerCalls(address, table.root, marker, secret)
    if secret is not None:
        raise ConfigError(f"option {MARKER_SECRET}: only calls are signed, so {MARKER_TO} has to be a URL")
    if address is None:
        return MarkerFiles(table, name, zone, f"{OUTCOME_DIRECTORY}/done")
    return MarkerFiles(open_storage(address, options, what="markers' directory"), name, zone)
