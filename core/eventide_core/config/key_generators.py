"""Key generators."""

from eventide_core.config.option import FLAG, TEXT, optional

PARTITION_TIMES = optional(
    "hoodie.keygen.timebased.*", TEXT, "Hudi's settings of TimestampBasedKeyGenerator.", otherwise="what the table says"
)
COMPLEX_KEY_NEW_ENCODING = optional(
    "hoodie.write.complex.keygen.new.encoding",
    FLAG,
    "Whether ComplexKeyGenerator writes one key field as the bare value.",
    otherwise="true from version 9 on; below it, such a table is refused without this option",
)
