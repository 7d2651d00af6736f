"""Sources, which say how far what a table is filled from has come."""

from eventide_core.config.option import DURATION, TEXT, Option

SOURCE_SETTINGS = Option(
    "eventide.source.*",
    TEXT,
    None,
    "A setting of a source, `eventide.source.NAME.SETTING`, beside those that the table declares: such as a password, which "
    "the table doesn't keep. With `watermark`, each write states that T of the source.",
)
IDLE_SOURCES = Option(
    "eventide.freshness.idle",
    DURATION,
    None,
    "How long the silence of a source counts as progress, as fast as the clock. `eventide.source.NAME.idle` of the table "
    "wins.",
    otherwise="never: a silent source holds the watermark",
)
