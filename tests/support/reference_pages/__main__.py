"""Writes the pages."""

from support.reference_pages import DIRECTORY, pages

DIRECTORY.mkdir(exist_ok=True)
for name, text in pages().items():
    (DIRECTORY / name).write_text(text, encoding="utf-8")
