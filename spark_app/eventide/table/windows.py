"""Closed windows of event time: each is delivered once when it is complete, and again if late data changed it."""

from typing import TYPE_CHECKING

from eventide.table.arguments import require_given_texts, require_texts
from eventide.table.open_table import OpenTable

if TYPE_CHECKING:
    from eventide.table.window import Windows
    from eventide_core.table.records.event_time import Moment


class TableWindows(OpenTable):
    """The windows of `eventide.Table`."""

    __slots__ = ()

    def windows(
        self,
        every: str,
        consumer: str,
        *,
        time_zone: str = "UTC",
        since: "Moment | None" = None,
        late: str = "redeliver",
        corrections_for: str | None = None,
        lease: str = "15m",
        keep: str = "7d",
        take_over: bool = False,
        renew: bool = False,
    ) -> "Windows":
        """The closed windows of event time that a consumer has not had yet, in order.

            for window in table.windows(every="1h", consumer="billing"):
                bill(window.rows())
                window.done()

        A window is closed as soon as a compaction has published a watermark at or after its end. `every` is a length that
        divides an hour or a day, counted from midnight in `time_zone`: 15m, 1h, 1d. The first window is the one that holds
        `since`, or otherwise the earliest event time. Rows whose event time is null or cannot be read are in no window.

        A done window that late data changes comes again (`window.is_correction`), before any new one, if it begins at most
        `corrections_for` before the next window (None: always). With `late="ledger"`, it is only recorded
        (`.progress().ledger`), with "ignore" not even that.

        A runner holds a window for the `lease`; then, or with `take_over`, another one gets it with the same rows. Until
        `keep` after a consumer's last step, `clean` keeps the files that the consumer needs, those of two views at most.
        Without them, CleanedHistoryError is raised, and `renew` goes on with the latest view.

        Raises ConfigError, WindowTakenError while another runner holds a window, UnsupportedTableError for a copy-on-write
        table, which has no watermark.
        """
        from eventide.table.window import Windows, window_terms

        require_texts(every=every, consumer=consumer, time_zone=time_zone, late=late, lease=lease, keep=keep)
        require_given_texts(corrections_for=corrections_for)
        terms = window_terms(
            every,
            time_zone=time_zone,
            since=since,
            late=late,
            corrections_for=corrections_for,
            lease=lease,
            keep=keep,
        )
        return Windows(self._application, consumer, terms, take_over, renew)
