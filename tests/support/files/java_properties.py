"""An independent implementation of Java's `Properties.store`, for tests of its reader."""

from collections.abc import Mapping


def properties_text(properties: Mapping[str, str]) -> str:
    """A file of settings as Hudi writes it."""
    lines = [f"{_stored(k, is_key=True)}={_stored(v, is_key=False)}" for k, v in properties.items()]
    return "#Properties saved on 2026-11-21\n#Sat Nov 21\n" + "\n".join(lines) + "\n"


def _stored(text: str, *, is_key: bool) -> str:
    """A key or value as Java's Properties.store writes it."""
    escapes = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
    escapes |= {character: "\\" + character for character in "=:#!"}
    written = ""
    for number, character in enumerate(text):
        if character in escapes:
            written += escapes[character]
        elif character == " ":
            written += "\\ " if is_key or number == 0 else " "
        elif " " <= character <= "~":
            written += character
        else:
            units = character.encode("utf-16-be")
            written += "".join(f"\\u{units[n] << 8 | units[n + 1]:04X}" for n in range(0, len(units), 2))
    return written
