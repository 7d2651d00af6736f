"""One self-contained page: which event times the files of each slice cover, before and after the compaction."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from eventide.demo.coverage import Coverage, FileCoverage, Role

_WIDTH = 960  # of the drawing, in its own units
_LABEL = 110  # left in it, for the slices' names
_MARGIN = 40  # right in it, for the last hour's label
_ROW = 7  # height of a file's bar, with the gap below it
_GAP = 14  # between slices
_HOUR_MS = 3_600_000
_SHOWN_BEFORE_MS = 30 * _HOUR_MS  # how far back of T the picture goes: the base files reach further

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --faint: #687385; --line: #d5dae2; --paper: #ffffff;
  --base: #9aa7b8; --merged: #1f77b4; --left: #e08214; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --faint: #97a1b0; --line: #39414d; --paper: #14181e;
  --base: #66758a; --merged: #58a6e0; --left: #f2a14b; } }
body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-bottom: 0.2rem; }
svg { width: 100%; height: auto; } text { fill: var(--faint); font-size: 11px; }
.base { fill: var(--base); } .merged { fill: var(--merged); } .left { fill: var(--left); }
.grid { stroke: var(--line); } .cut { stroke: var(--ink); stroke-dasharray: 4 3; }
.key span { display: inline-block; width: 0.9em; height: 0.9em; margin: 0 0.35em 0 1.2em; vertical-align: -0.1em; }
.key .base { background: var(--base); } .key .merged { background: var(--merged); }
.key .left { background: var(--left); } li { margin: 0.3rem 0; }
"""

_CLASS = {Role.BASE: "base", Role.MERGED: "merged", Role.LEFT: "left"}


def draw(before: Coverage, after: Coverage, threshold_ms: int, sentences: Sequence[str]) -> str:
    """The page as HTML. Times are in UTC."""
    steps = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    last_ms = max(file.max_ms for coverage in (before, after) for files in coverage.slices.values() for file in files)
    scale = _Scale(threshold_ms - _SHOWN_BEFORE_MS, max(last_ms, threshold_ms + _HOUR_MS), threshold_ms)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>eventide demo</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>
<h1>Compaction of everything before {_time(threshold_ms)}</h1>
<p>Each bar is a file, as long as the event times it holds; a group of bars is a file slice.</p>
<p class="key"><span class="base"></span>base file<span class="merged"></span>log, to be merged
<span class="left"></span>log, left over</p>
<h2>Before</h2>{_drawing(before, scale)}
<h2>After</h2>{_drawing(after, scale)}
<h2>What happened</h2><ol>{steps}</ol>
</body></html>
"""


class _Scale:
    """Event times to places across the drawing."""

    def __init__(self, begin_ms: int, end_ms: int, threshold_ms: int) -> None:
        self.begin_ms, self.end_ms, self.threshold_ms = begin_ms, end_ms, threshold_ms

    def place(self, epoch_ms: int) -> float:
        shown = min(max(epoch_ms, self.begin_ms), self.end_ms)
        return _LABEL + (_WIDTH - _LABEL - _MARGIN) * (shown - self.begin_ms) / (self.end_ms - self.begin_ms)

    def marks(self) -> range:
        """Every sixth hour."""
        step = 6 * _HOUR_MS
        return range(self.begin_ms + -self.begin_ms % step, self.end_ms, step)


def _drawing(coverage: Coverage, scale: _Scale) -> str:
    parts: list[str] = []
    top = 18
    for name, files in coverage.slices.items():
        parts.append(f'<text x="0" y="{top + 9}">{escape(name)}</text>')
        for file in files:
            parts.append(_bar(file, top, scale))
            top += _ROW
        top += _GAP
    grid = "".join(
        f'<line class="grid" x1="{scale.place(at):.1f}" x2="{scale.place(at):.1f}" y1="14" y2="{top}"/>'
        f'<text x="{scale.place(at) + 2:.1f}" y="10">{_hour(at)}</text>'
        for at in scale.marks()
    )
    cut = scale.place(scale.threshold_ms)
    line = f'<line class="cut" x1="{cut:.1f}" x2="{cut:.1f}" y1="0" y2="{top}"><title>T</title></line>'
    return f'<svg viewBox="0 0 {_WIDTH} {top}" role="img">{grid}{"".join(parts)}{line}</svg>'


def _bar(file: FileCoverage, top: int, scale: _Scale) -> str:
    begin, end = scale.place(file.min_ms), scale.place(file.max_ms)
    title = f"{file.name}: {file.role}, {_time(file.min_ms)} to {_time(file.max_ms)}"
    return (
        f'<rect class="{_CLASS[file.role]}" x="{begin:.1f}" y="{top}" width="{max(end - begin, 1.5):.1f}" '
        f'height="{_ROW - 2}"><title>{escape(title)}</title></rect>'
    )


def _time(epoch_ms: int) -> str:
    return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _hour(epoch_ms: int) -> str:
    return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%d %b %H:%M}"
