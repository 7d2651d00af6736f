"""What the core asks of the world: each port with its guarantees in words.

Every path is relative to the table's root, with forward slashes; an adapter refuses one that would leave the root with
UnsafePathError. An adapter answers a failing world with StorageError or EngineError, never with a foreign exception.
"""

from eventide_core.ports.arrival import *
from eventide_core.ports.catalog import *
from eventide_core.ports.content import *
from eventide_core.ports.locking import *
from eventide_core.ports.markers import *
from eventide_core.ports.metadata_table import *
from eventide_core.ports.metrics import *
from eventide_core.ports.records import *
from eventide_core.ports.running import *
from eventide_core.ports.storage import *
from eventide_core.ports.timeline import *
