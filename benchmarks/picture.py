"""Small line pictures as SVG, both scales logarithmic: a straight line of slope one is a cost in proportion."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _INNER = 420, 240, 46, 34, 150
_COLORS = ("#1f6f8b", "#c8553d", "#6a7b3f")


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    values: Sequence[float]


def picture(title: str, places: Sequence[float], curves: Sequence[Curve], *, bottom: float | None = None) -> str:
    """The curves over the same places, each with its values beside its points; `bottom` is the value at the lower edge."""
    across = _scale(places, _LEFT, _WIDTH - 40)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="10">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="16" font-size="12">{escape(title)}</text>',
        f'<path d="M{_LEFT - 10} {_TOP + _INNER + 12}H{_WIDTH - 20}" stroke="#999"/>',
    ]
    parts += [
        f'<text x="{x:.0f}" y="{_TOP + _INNER + 26}" text-anchor="middle">{place:g}</text>'
        for x, place in zip(across, places, strict=True)
    ]
    for number, (curve, color) in enumerate(zip(curves, _COLORS, strict=False)):
        up = _scale(curve.values, _TOP + _INNER, _TOP + 10, bottom)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, up, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        for x, y, value in zip(across, up, curve.values, strict=True):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{color}"/>')
            parts.append(f'<text x="{x:.1f}" y="{y - 6 - 8 * number:.1f}" fill="{color}">{value:.3g}</text>')
        x = _LEFT + 130 * number
        parts.append(f'<text x="{x}" y="{_HEIGHT - 12}" fill="{color}">{escape(curve.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _scale(values: Sequence[float], start: float, end: float, bottom: float | None = None) -> list[float]:
    """Where the values stand between two ends, by their logarithms; zero stands a step before the least above it."""
    least = min((value for value in values if value > 0), default=1.0)
    logs = [math.log(value) if value > 0 else math.log(least) - 1 for value in values]
    low, high = min(logs) if bottom is None else math.log(bottom), max(logs)
    return [start + (end - start) * ((value - low) / (high - low) if high > low else 0.5) for value in logs]
