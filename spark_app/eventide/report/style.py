"""The style of the pages: colors for light and dark mode, and the frame of a page."""

from pathlib import Path

from eventide.report.coverage import Role
from eventide.report.tables import shown
from eventide.report.whole_file import appearing_whole
from eventide_core.errors import ConfigError

_STYLE = """
:root { color-scheme: light dark; --ink: #1b2330; --soft: #56606f; --line: #dfe3ea; --paper: #ffffff; --panel: #f5f7fa;
  --base: #8796ab; --merged: #1d6fb8; --remaining: #e3a008; --late: #c81e3a; --good: #13704a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf1; --soft: #a2adbc; --line: #333b47; --paper: #12161c;
  --panel: #1a2029; --base: #6b7b93; --merged: #5aa9ec; --remaining: #eab83a; --late: #ff6b81; --good: #5fd0a0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 0.5rem; }
p { margin: 0.4rem 0 0.8rem; max-width: 46rem; }
.soft, caption, figcaption { color: var(--soft); font-size: 0.875rem; }
.lead { font-size: 1.15rem; margin: 1.2rem 0; padding: 0.8rem 1rem; border-left: 4px solid var(--good);
  background: var(--panel); max-width: none; }
.lead.late { border-color: var(--late); } .lead.none { border-color: var(--base); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(45%, 10rem), 1fr)); gap: 0.75rem;
  grid-auto-flow: dense; margin: 1rem 0; padding: 0; }
.tiles div { background: var(--panel); padding: 0.7rem 0.9rem; border-radius: 6px; }
.tiles dt { color: var(--soft); font-size: 0.875rem; }
.tiles dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tiles .long { grid-column: span 2; } .moment, td .short { white-space: nowrap; }
ol code { display: block; overflow-wrap: anywhere; } ol code b { font-weight: inherit; white-space: nowrap; }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 0 2.5rem; }
.answers h2 { margin-top: 0.6rem; } .answers section { min-width: 0; }
.wide { overflow-x: auto; margin: 0.6rem 0; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: 0.3rem; }
th, td { text-align: left; padding: 0.35rem 0.9rem 0.35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } thead th { color: var(--soft); white-space: nowrap; }
td.number, th.number { text-align: right; white-space: nowrap; } td.time { white-space: nowrap; }
td.text { min-width: 10rem; overflow-wrap: anywhere; } tbody th { width: 16rem; white-space: nowrap; }
tr:has(+ .why) > * { border-bottom: 0; padding-bottom: 0; } .why p { margin: 0; } .why td { color: var(--soft); }
.why div { position: sticky; left: 0; width: fit-content; max-width: min(46rem, calc(100vw - 3rem)); }
.why div { overflow-wrap: anywhere; }
@media (max-width: 40rem) { table, tbody, tbody tr, tbody th, tbody td { display: block; } thead { display: none; }
  table { width: auto; } tbody tr { border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  tbody td, tbody th { border: 0; padding: 0.1rem 0; width: auto; min-width: 0; text-align: left !important; }
  tbody th, td.time, td.number { white-space: normal; overflow-wrap: anywhere; } tr:has(+ .why) { border-bottom: 0; }
  td[data-column]::before { content: attr(data-column) ": "; color: var(--soft); } }
figure { margin: 0.6rem 0; }
details { border-top: 1px solid var(--line); padding: 0.3rem 0; }
summary { cursor: pointer; font-weight: 600; padding: 0.2rem 0; } summary .soft { font-weight: 400; margin-left: 0.6rem; }
svg { display: block; width: 100%; min-width: 44rem; height: auto; }
svg text { fill: var(--ink); font-size: 12px; paint-order: stroke; stroke: var(--paper);
  stroke-width: 4px; }
svg .tick, svg .note { fill: var(--soft); font-size: 11px; }
svg .mark-label { font-weight: 600; }
.margin { fill: var(--panel); }
.grid { stroke: var(--line); } .mark { stroke: var(--ink); stroke-width: 1.4; stroke-dasharray: 4 3; }
.unknown { fill: none; stroke: var(--soft); stroke-dasharray: 2 3; }
.cut-line { fill: none; stroke: var(--merged); stroke-width: 2; } .cut-dot { fill: var(--merged); }
.watermark-dot { fill: var(--paper); stroke: var(--late); stroke-width: 2; }
.bar { display: block; width: 8rem; height: 0.5rem; margin-top: 0.25rem; border: 1px solid var(--line);
  background: linear-gradient(var(--soft), var(--soft)) 50% 0 / 1px 100% no-repeat var(--panel); }
.bar i { display: block; height: 100%; opacity: 0.85; }
.bad { color: var(--late); font-weight: 600; }
.key { list-style: none; display: flex; flex-wrap: wrap; gap: 0.2rem 1.3rem; padding: 0; margin: 0.4rem 0;
  font-size: 0.9rem; }
.key i { display: inline-block; width: 1em; height: 0.7em; margin-right: 0.45em; }
ol li, ul li { margin: 0.25rem 0; max-width: 46rem; }
a { color: inherit; }
abbr { text-decoration: underline dotted; cursor: help; }
:focus-visible { outline: 2px solid var(--merged); outline-offset: 2px; }
""" + "".join(f"rect.{r}, path.{r} {{ fill: var(--{r}); }} i.{r} {{ background: var(--{r}); }}\n" for r in Role)


def page(title: str, body: str) -> str:
    """A whole page around a body. It loads nothing from the network, and forbids the browser to do so."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{shown(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def key(roles: dict[Role, str]) -> str:
    """The key to the colors."""
    items = "".join(f'<li><i class="{role}"></i>{shown(text)}</li>' for role, text in roles.items())
    return f'<ul class="key">{items}</ul>'


def write_page(path: Path, text: str) -> None:
    """Replaces the file atomically: a reader sees either the old page or the new one.

    Raises ConfigError if it cannot be written.
    """
    try:
        with appearing_whole(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise ConfigError(f"file {str(path)!r} cannot be written: {error.strerror}") from None
