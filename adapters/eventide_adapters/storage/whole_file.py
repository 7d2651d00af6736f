"""How much of a file a storage reads at once: the files of a timeline are read whole, and anyone may have put them there."""

from eventide_core.errors import ResourceLimitError
from eventide_core.ports import WHOLE_FILE_BYTES_MAX


def check_whole(size: int, path: str, root: str) -> None:
    """Raises ResourceLimitError where so many bytes are more than a file has that is read whole."""
    if size > WHOLE_FILE_BYTES_MAX:
        raise ResourceLimitError(
            f"{path!r} in {root} has more than {WHOLE_FILE_BYTES_MAX} bytes, the most that eventide reads of a file as a "
            "whole: restore it from a copy, or remove it if it is no file of the table"
        )
