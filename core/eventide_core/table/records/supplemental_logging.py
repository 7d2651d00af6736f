"""What change logs hold: `hoodie.table.cdc.supplemental.logging.mode`."""

from collections.abc import Mapping
from enum import StrEnum

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.property_keys import CDC_SUPPLEMENTAL_LOGGING_MODE


class SupplementalLogging(StrEnum):
    """The columns of a change log. Hudi 0.x also writes these names in small letters."""

    OP_KEY_ONLY = "OP_KEY_ONLY"  # op, record_key
    DATA_BEFORE = "DATA_BEFORE"  # op, record_key, before
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"  # op, ts_ms, before, after

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "SupplementalLogging":
        """The mode of a table. Raises UnsupportedTableError for an unknown one."""
        text = properties.get(CDC_SUPPLEMENTAL_LOGGING_MODE, cls.DATA_BEFORE_AFTER).upper()
        if text not in cls.__members__:
            known = ", ".join(cls)
            raise UnsupportedTableError(
                f"{CDC_SUPPLEMENTAL_LOGGING_MODE}={text} in hoodie.properties is not one of {known}"
            )
        return cls(text)
