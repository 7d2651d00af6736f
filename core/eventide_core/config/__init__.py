"""The options of the core, by their section of docs/reference/configuration.md. May import errors alone.

Adapters declare theirs beside what reads them, and the application in `eventide.options`, which lists all of them.
"""

from eventide_core.config.arrival import *
from eventide_core.config.cleaning import *
from eventide_core.config.compaction import *
from eventide_core.config.datahub import *
from eventide_core.config.file_sizes import *
from eventide_core.config.key_generators import *
from eventide_core.config.lock import *
from eventide_core.config.markers import *
from eventide_core.config.option import EMPTY_VARIABLE as EMPTY_VARIABLE
from eventide_core.config.option import Option as Option
from eventide_core.config.option import Options as Options
from eventide_core.config.option import OptionType as OptionType
from eventide_core.config.strategies import *
from eventide_core.config.sync import *
from eventide_core.config.tags import *
from eventide_core.config.times import duration_of as duration_of
from eventide_core.config.times import duration_seconds as duration_seconds
from eventide_core.config.times import duration_text as duration_text
from eventide_core.config.times import positive_duration_of as positive_duration_of
from eventide_core.config.times import zone_of as zone_of
from eventide_core.config.writes import *
