"""The deletes of DELETE blocks of versions 1 and 2, which are Java objects as Kryo writes them.

    deletes  := object                       version 1: a HoodieKey[], version 2: a DeleteRecord[]
    object   := class  [reference]  value    a boxed number or boolean has no reference
    class    := varint 0: null | varint 1  varint name number  [string: the name, where the number is new]
              | varint n + 2: a class that every Kryo knows by that number
    reference:= varint 0: null | varint 1: a new object | varint n + 2: the n-th object again
    array    := varint n + 1  n x object
    HoodieKey    := string reference: partition path  string reference: record key
    DeleteRecord := object: HoodieKey  object: ordering value
    string   := ASCII of 2 to 63 letters, the last one with its high bit set | length  letters in CESU-8

No class is loaded by name: only the classes below are accepted, and every length is checked against the bytes. Hudi has
written these blocks in the same way from version 0.12 (keys from 0.5) to the present.
"""

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from eventide_core.errors import RecordDecodeError, UnsupportedLogFormatError

_MODEL = "org.apache.hudi.common.model"
_KEY, _DELETE = f"{_MODEL}.HoodieKey", f"{_MODEL}.DeleteRecord"
_KNOWN_NUMBERS = {2: "int", 3: "java.lang.String", 4: "float", 5: "boolean", 8: "short", 9: "long", 10: "double"}
_VARINT_BYTES_MAX = 9
_EPOCH = dt.date(1970, 1, 1).toordinal()

Wrapped = tuple[str, Any]
"""The name of the wrapper that version 3 would have for an ordering value, and the value in it."""


def read_kryo_deletes(data: bytes, version: int, place: str) -> list[tuple[str, Wrapped | None]]:
    """Keys with their ordering values; None if there is none, which is always the case in version 1.

    Raises RecordDecodeError for bytes that are not such objects, UnsupportedLogFormatError for objects of other classes.
    """
    reader = _Reader(data, place)
    try:
        deletes = reader.array(_KEY if version == 1 else _DELETE)
    except (IndexError, struct.error, UnicodeDecodeError, ValueError, OverflowError) as error:
        if isinstance(error, RecordDecodeError | UnsupportedLogFormatError):
            raise
        raise RecordDecodeError(f"{place}: its deletes are damaged at byte {reader.position}: {error}") from error
    if reader.position != len(data):
        raise RecordDecodeError(f"{place}: its deletes end at byte {reader.position} of {len(data)}")
    return [(delete, None) for delete in deletes] if version == 1 else deletes


class _Reader:
    """Reads Kryo's objects from bytes, and keeps names and objects for later references."""

    def __init__(self, data: bytes, place: str) -> None:
        self.position = 0
        self._data = data
        self._place = place
        self._names: list[str] = []
        self._objects: list[Any] = []

    def array(self, of: str) -> list[Any]:
        """An array of objects of that class: the key of a HoodieKey, or the key and ordering value of a DeleteRecord."""
        self._expect(self._class(), f"[L{of};")
        self._new_object()
        length = self._varint() - 1
        if not 0 <= length <= len(self._data) - self.position:
            raise RecordDecodeError(f"{self._place}: {length} deletes in {len(self._data)} bytes")
        read = self._key if of == _KEY else self._delete
        return [read() for _ in range(length)]

    def _delete(self) -> tuple[str, Wrapped | None]:
        self._expect(self._class(), _DELETE)
        delete: tuple[str, Wrapped | None] = self._object(lambda: (self._key(), self._ordering()))
        return delete

    def _key(self) -> str:
        self._expect(self._class(), _KEY)
        key: str = self._object(self._fields_of_key)
        return key

    def _fields_of_key(self) -> str:
        self._text_object()
        key = self._text_object()
        if key is None:
            raise RecordDecodeError(f"{self._place}: a delete without a record key")
        return key

    def _ordering(self) -> Wrapped | None:
        match self._class():
            case None:
                return None
            case "int":
                return "IntWrapper", _zigzag(self._varint())
            case "short":
                return "IntWrapper", *struct.unpack(">h", self._bytes(2))
            case "long":
                return "LongWrapper", _zigzag(self._varint())
            case "float":
                return "FloatWrapper", *struct.unpack(">f", self._bytes(4))
            case "double":
                return "DoubleWrapper", *struct.unpack(">d", self._bytes(8))
            case "boolean":
                return "BooleanWrapper", self._bytes(1) != b"\x00"
            case "java.lang.String":
                return "StringWrapper", self._text_object()
            case "java.math.BigDecimal":
                return "DecimalWrapper", self._object(self._decimal)
            case "java.time.LocalDate":
                return "DateWrapper", self._object(self._days)
            case "java.time.Instant":
                return "TimestampMicrosWrapper", self._object(self._instant_micros)
            case "java.sql.Timestamp":
                return "TimestampMicrosWrapper", self._object(lambda: _signed(self._varint(), 64) * 1000)
            case other:
                raise self._unknown(other)

    def _decimal(self) -> Decimal:
        unscaled = int.from_bytes(self._bytes(self._varint() - 1), "big", signed=True)
        return Decimal(unscaled).scaleb(-_zigzag(self._varint()))

    def _days(self) -> int:
        year, (month, day) = _signed(self._varint(), 32), self._bytes(2)
        return dt.date(year, month, day).toordinal() - _EPOCH

    def _instant_micros(self) -> int:
        seconds, nanos = _signed(self._varint(), 64), self._varint()
        return seconds * 1_000_000 + nanos // 1000

    def _object(self, read: Callable[[], Any]) -> Any:
        """A new object, or one that was read before."""
        number = self._varint()
        if number == 0:
            raise RecordDecodeError(f"{self._place}: a null at byte {self.position} instead of an object")
        if number > 1:
            return self._objects[number - 2]
        place = len(self._objects)
        self._objects.append(None)  # the object is numbered before the objects inside it
        self._objects[place] = read()
        return self._objects[place]

    def _new_object(self) -> None:
        if self._varint() != 1:
            raise RecordDecodeError(f"{self._place}: no array of deletes at byte {self.position}")
        self._objects.append(None)

    def _text_object(self) -> str | None:
        number = self._varint()
        if number == 0:
            return None
        if number > 1:
            text = self._objects[number - 2]
            if not isinstance(text, str):
                raise RecordDecodeError(f"{self._place}: object {number - 2} is not a text at byte {self.position}")
            return text
        text = self._text()
        self._objects.append(text)
        return text

    def _class(self) -> str | None:
        number = self._varint()
        if number == 0:
            return None
        if number > 1:
            return _KNOWN_NUMBERS.get(number, f"registered with Kryo as {number - 2}")
        number = self._varint()
        if number == len(self._names):
            self._names.append(self._text())
        return self._names[number]

    def _expect(self, actual: str | None, expected: str) -> None:
        if actual != expected:
            raise self._unknown(actual)

    def _unknown(self, name: str | None) -> UnsupportedLogFormatError:
        return UnsupportedLogFormatError(
            f"{self._place}: a delete has a Java object of a class {name!r} that eventide doesn't know; run a full "
            "compaction with the Hudi version that wrote it first"
        )

    def _text(self) -> str:
        first = self._data[self.position]
        if not first & 0x80:
            end = self.position
            while not self._data[end] & 0x80:
                end += 1
            letters = self._data[self.position : end] + bytes([self._data[end] & 0x7F])
            self.position = end + 1
            return letters.decode("ascii")
        self.position += 1
        length = first & 0x3F
        if first & 0x40:
            length |= self._varint() << 6
        if not 0 < length <= len(self._data) - self.position + 1:
            raise RecordDecodeError(f"{self._place}: a text of {length - 1} letters at byte {self.position}")
        start = self.position
        for _ in range(length - 1):
            lead = self._data[self.position]
            self.position += 1 if lead < 0x80 else 2 if lead < 0xE0 else 3
        halves = self._data[start : self.position].decode("utf-8", "surrogatepass")
        return halves.encode("utf-16", "surrogatepass").decode("utf-16")

    def _bytes(self, length: int) -> bytes:
        if not 0 <= length <= len(self._data) - self.position:
            raise RecordDecodeError(
                f"{self._place}: {length} bytes expected at byte {self.position} of {len(self._data)}"
            )
        self.position += length
        return self._data[self.position - length : self.position]

    def _varint(self) -> int:
        value = 0
        for number in range(_VARINT_BYTES_MAX):
            byte = self._data[self.position]
            self.position += 1
            if number == _VARINT_BYTES_MAX - 1:  # the ninth byte is whole
                return value | byte << 7 * number
            value |= (byte & 0x7F) << 7 * number
            if not byte & 0x80:
                break
        return value


def _zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) else number
