"""The forms in which Hudi stores the least and the greatest value of a column, by the column's type.

A form is a wrapper record and, in the second version of the index (table version 9), the number and details of a value type.
A decimal has a DecimalWrapper in the first version, and in the second a BytesWrapper, 10, "precision,scale".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowType
from eventide_adapters.format.metadata_table.records.records import Value, record_name

_FORMS: Final[Mapping[Any, tuple[str | None, str, int]]] = {
    pa.bool_(): ("BooleanWrapper", "BooleanWrapper", 2),
    pa.int32(): ("IntWrapper", "IntWrapper", 3),
    pa.int64(): ("LongWrapper", "LongWrapper", 4),
    pa.float32(): ("FloatWrapper", "FloatWrapper", 5),
    pa.float64(): ("DoubleWrapper", "DoubleWrapper", 6),
    pa.string(): ("StringWrapper", "StringWrapper", 7),
    pa.binary(): ("BytesWrapper", "BytesWrapper", 8),
    pa.date32(): ("DateWrapper", "IntWrapper", 12),
    pa.timestamp("ms", "UTC"): ("LongWrapper", "LongWrapper", 15),
    pa.timestamp("us", "UTC"): ("LongWrapper", "LongWrapper", 16),
    pa.timestamp("ms"): (None, "LongWrapper", 18),
    pa.timestamp("us"): (None, "LongWrapper", 19),
}
"""The wrapper in the first version, if it has the type, that in the second, and the number of the value type."""

_DECIMAL: Final = 10
_DATE_WRAPPERS: Final = frozenset({"DateWrapper", "LocalDateWrapper", "IntWrapper"})
_TIMESTAMP_WRAPPERS: Final = frozenset({"LongWrapper", "TimestampMicrosWrapper"})


@dataclass(frozen=True, slots=True)
class ValueForm:
    """The form of a value: its wrapper and, in the second version of the index, its value type.

    `wrapper` is the name of Hudi's Avro record around the value, without its namespace. `number` and `more` are the ordinal
    of the value type and its details, such as a decimal's precision and scale; None in the first version.
    """

    wrapper: str
    number: int | None = None
    more: str | None = None

    @classmethod
    def of(cls, arrow: ArrowType, *, has_value_types: bool) -> "ValueForm | None":
        """The form of a column's values; None if Hudi has no statistics of that type."""
        if isinstance(arrow, pa.Decimal128Type):
            if not has_value_types:
                return cls("DecimalWrapper")
            return cls("BytesWrapper", _DECIMAL, f"{arrow.precision},{arrow.scale}")
        first, second, number = _FORMS.get(arrow, (None, "", None))
        if has_value_types:
            return None if number is None else cls(second, number)
        return None if first is None else cls(first)

    def is_form_of(self, model: Value, arrow: ArrowType) -> bool:
        """Whether known statistics with values, `model`, have a form of the type. Not so if the column was widened."""
        wrapper = record_name(model["minValue"])
        if isinstance(arrow, pa.Decimal128Type) and self.number is not None:
            return wrapper == self.wrapper and (model["valueType"] or {}).get("additionalInfo") == self.more
        # Hudi's versions differ in the wrapper of times.
        if pa.types.is_date32(arrow):
            return wrapper in _DATE_WRAPPERS
        return wrapper in _TIMESTAMP_WRAPPERS if pa.types.is_timestamp(arrow) else wrapper == self.wrapper

    def statistics(self) -> Value:
        """The parts of a column's statistics that state the form. `minValue` has no value yet."""
        form: Value = {"minValue": (f".{self.wrapper}", {})}
        if self.number is None:
            return form
        return form | {"valueType": {"typeOrdinal": self.number, "additionalInfo": self.more}}
