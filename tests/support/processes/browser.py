"""A real headless browser without a network, which renders a page as a user sees it."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any, Literal

from support.run.real_parts import require_or_skip

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PROBED = re.compile(r'<pre id="probed">(.*?)</pre>', re.DOTALL)
_POLICY = (
    "default-src 'none'"  # The page itself runs no script. The test inspects a copy that can run the script below.
)
_PROBE = """
<script nonce="probe">
addEventListener("error", (event) => (window.failed ||= []).push(String(event.message || event.target.src)), true);
addEventListener("load", () => {
  const style = getComputedStyle(document.body);
  const shown = (element) => { const box = element.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
  const told = document.createElement("pre");
  told.id = "probed";
  told.textContent = JSON.stringify({
    background: style.backgroundColor, color: style.color, scripts: document.scripts.length - 1,
    marks: [...document.querySelectorAll("svg rect, svg circle, svg path, svg line")].filter(shown).length,
    tables: [...document.querySelectorAll("table")].filter(shown).length,
    fetched: performance.getEntriesByType("resource").map((entry) => entry.name),
    width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth,
    cut: [...document.querySelectorAll(".wide:has(table)")].filter((part) => part.scrollWidth > part.clientWidth).length,
    failed: window.failed || [],
  });
  document.body.append(told);
});
</script>
"""


def browser() -> str:
    """The browser's command. Skips the running test if no browser is installed."""
    for name in _NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    return require_or_skip(f"no browser: none of {', '.join(_NAMES)} is on PATH")


def seen_in_browser(page: Path, scheme: Literal["light", "dark"], width: int, scratch: Path) -> dict[str, Any]:
    """What the browser computes for a page, in pixels and CSS colors. Does not change `page`."""
    copy = scratch / f"{scheme}-{width}.html"
    text = page.read_text(encoding="utf-8")
    copy.write_text(text.replace(_POLICY, f"{_POLICY}; script-src 'nonce-probe'") + _PROBE, encoding="utf-8")
    command = [
        browser(),
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={scratch / 'profile'}",
        f"--window-size={width},1400",
        f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
        "--dump-dom",
        copy.as_uri(),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    probed = _PROBED.search(shown)
    assert probed is not None, shown[-2000:]
    return dict(json.loads(unescape(probed[1])))
