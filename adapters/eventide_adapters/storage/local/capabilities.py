"""Tests the capabilities of a local file system."""

import os
import posixpath
import uuid
from contextlib import suppress

from eventide_adapters.storage.local.directories import LocalDirectories
from eventide_adapters.storage.paths import TEMPORARY
from eventide_core.ports import Capability


def try_out(directories: LocalDirectories) -> Capability:
    """The capabilities found in a directory beside TEMPORARY, which is then removed. NONE on a read-only table."""
    capabilities = Capability.NONE
    probe = f"{TEMPORARY}{uuid.uuid4().hex}"
    with suppress(OSError), directories.opened(posixpath.dirname(TEMPORARY), creates=True) as above:
        with directories.opened(probe, creates=True) as handle:
            try:
                os.close(os.open("file", os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=handle))
                with suppress(OSError):
                    os.link("file", "hard", src_dir_fd=handle, dst_dir_fd=handle)
                    capabilities |= Capability.HARDLINK | Capability.PUT_IF_ABSENT | Capability.SERVER_COPY
                with suppress(OSError):
                    os.symlink("file", "symbolic", dir_fd=handle)
                    capabilities |= Capability.SYMLINK
            finally:
                for name in os.listdir(handle):
                    os.unlink(name, dir_fd=handle)
        os.rmdir(posixpath.basename(probe), dir_fd=above)
    return capabilities
