"""The forms in which Hudi stores the least and the greatest value of a column, by the column's type.

A form is a wrapper record and, in the second version of the index (table version 9), the number and details of a value type.

    type                          first version    second version
    bool                          BooleanWrapper   BooleanWrapper, 2
    int32                         IntWrapper       IntWrapper, 3
    int64                         LongWrapper      LongWrapper, 4
    float                         FloatWrapper     FloatWrapper, 5
    double                        DoubleWrapper    DoubleWrapper, 6
    string                        StringWrapper    StringWrapper, 7
    binary                        BytesWrapper     BytesWrapper, 8
    decimal                       DecimalWrapper   BytesWrapper, 10, "precision,scale"
    date32                        DateWrapper      IntWrapper, 12
    timestamp[ms], with a zone    LongWrapper      LongWrapper, 15
    timestamp[us], with a zone    LongWrapper      LongWrapper, 16
    timestamp[ms], without        -                LongWrapper, 18
    timestamp[us], without        -                LongWrapper, 19
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from eventide_adapters.format.columns.arrow_numpy import ArrowType
from eventide_adapters.format.metadata_records.records import Value

_PLAIN: Final[Mapping[Any, tuple[str, int]]] = {
    pa.bool_(): ("BooleanWrapper", 2),
    pa.int32(): ("IntWrapper", 3),
    pa.int64(): ("LongWrapper", 4),
    pa.float32(): ("FloatWrapper", 5),
    pa.float64(): ("DoubleWrapper", 6),
    pa.string(): ("StringWrapper", 7),
    pa.binary(): ("BytesWrapper", 8),
}
_FIRST_VERSION: Final[Mapping[Any, str]] = {
    **{arrow: wrapper for arrow, (wrapper, _) in _PLAIN.items()},
    pa.date32(): "DateWrapper",
    pa.timestamp("ms", "UTC"): "LongWrapper",
    pa.timestamp("us", "UTC"): "LongWrapper",
}
_SECOND_VERSION: Final[Mapping[Any, tuple[str, int]]] = {
    **_PLAIN,
    pa.date32(): ("IntWrapper", 12),
    pa.timestamp("ms", "UTC"): ("LongWrapper", 15),
    pa.timestamp("us", "UTC"): ("LongWrapper", 16),
    pa.timestamp("ms"): ("LongWrapper", 18),
    pa.timestamp("us"): ("LongWrapper", 19),
}
_DECIMAL: Final = 10
_OTHER_WRAPPERS: Final[Mapping[Any, frozenset[str]]] = {
    pa.date32(): frozenset({"DateWrapper", "LocalDateWrapper", "IntWrapper"}),
    **dict.fromkeys(
        (pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        frozenset({"LongWrapper", "TimestampMicrosWrapper"}),
    ),
}
"""Hudi's versions differ in the wrapper of times."""


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
        if has_value_types:
            return cls(*_SECOND_VERSION[arrow]) if arrow in _SECOND_VERSION else None
        return cls(_FIRST_VERSION[arrow]) if arrow in _FIRST_VERSION else None

    def is_form_of(self, model: Value, arrow: ArrowType) -> bool:
        """Whether known statistics with values, `model`, have a form of the type. Not so if the column was widened."""
        wrapper = str(model["minValue"][0]).rpartition(".")[2]
        if isinstance(arrow, pa.Decimal128Type) and self.number is not None:
            return wrapper == self.wrapper and (model["valueType"] or {}).get("additionalInfo") == self.more
        return wrapper in _OTHER_WRAPPERS.get(arrow, {self.wrapper})

    def statistics(self) -> Value:
        """The parts of a column's statistics that state the form. `minValue` has no value yet."""
        form: Value = {"minValue": (f".{self.wrapper}", {})}
        if self.number is None:
            return form
        return form | {"valueType": {"typeOrdinal": self.number, "additionalInfo": self.more}}
