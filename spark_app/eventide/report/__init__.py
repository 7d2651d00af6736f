"""How fresh a table is and what holds it back, gathered into one value and rendered as one page."""

from eventide.report.coverage import SliceCoverage
from eventide.report.gather import Report, coverage, gather
from eventide.report.page import render
from eventide.report.style import write_page

__all__ = ["Report", "SliceCoverage", "coverage", "gather", "render", "write_page"]
