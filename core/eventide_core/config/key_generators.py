"""Key generators."""

from eventide_core.config.option import FLAG, TEXT, Option

PARTITION_TIMES = Option(
    "hoodie.keygen.timebased.*",
    TEXT,
    None,
    "Hudi's settings of TimestampBasedKeyGenerator.",
    otherwise="what the table says",
)
COMPLEX_KEY_NEW_ENCODING = Option(
    "hoodie.write.complex.keygen.new.encoding",
    FLAG,
    None,
    "Whether ComplexKeyGenerator writes one key field as the bare value.",
    otherwise="true from version 9 on; below it, such a table is refused without this option",
)
