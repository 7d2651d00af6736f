"""The OpenLineage events of one attempt at a compaction, by OpenLineage's client, which its own variables configure."""

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import attr
from openlineage.client import OpenLineageClient
from openlineage.client import event_v2 as lineage
from openlineage.client import facet_v2 as facets
from openlineage.client.uuid import generate_new_uuid

from eventide.formatting import sanitize
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.errors import format_timestamp
from eventide_core.ports import Clock
from eventide_core.service.compaction.result import CompactionResult

PRODUCER: Final = "urn:eventide"


@attr.define
class FreshnessFacet(facets.DatasetFacet):
    """The freshness of the read-optimized table after the compaction. Times are epoch milliseconds, and ISO-8601 beside."""

    watermarkMs: int | None  # noqa: N815  # the names of OpenLineage
    cutMs: int | None  # noqa: N815
    watermark: str | None
    cut: str | None
    lateRecords: int  # noqa: N815
    unknownEventTimeRecords: int  # noqa: N815
    unreadableEventTimeRecords: int  # noqa: N815
    basis: str
    heldBackBy: str | None  # noqa: N815

    @classmethod
    def of(cls, fresh: Freshness) -> "FreshnessFacet":
        return cls(
            watermarkMs=fresh.watermark_ms,
            cutMs=fresh.cut_ms,
            watermark=_iso(fresh.watermark_ms),
            cut=_iso(fresh.cut_ms),
            lateRecords=fresh.late_records,
            unknownEventTimeRecords=fresh.unknown_event_time_records,
            unreadableEventTimeRecords=fresh.unreadable_event_time_records,
            basis=fresh.basis,
            heldBackBy=fresh.held_back_by,
        )

    _additional_skip_redact: ClassVar[list[str]] = ["watermark", "cut"]


@attr.define
class CompactionFacet(facets.RunFacet):
    """The instant of the compaction, and its counts once it has completed."""

    instant: str
    metrics: dict[str, int] = attr.field(factory=dict)


class CompactionEvents:
    """Sends the events of one attempt. Each method raises the errors of the client."""

    def __init__(self, namespace: str, root: str, clock: Clock) -> None:
        self._client = OpenLineageClient()
        self._run_id = str(generate_new_uuid())
        self._dataset = dataset_of(root)
        self._job = lineage.Job(
            namespace,
            f"compact {self._dataset[1]}",
            {"jobType": facets.job_type_job.JobTypeJobFacet("BATCH", "EVENTIDE", "COMPACTION")},
        )
        self._clock = clock

    def start(self, instant: str) -> None:
        self._emit(lineage.RunState.START, CompactionFacet(instant))

    def complete(self, result: CompactionResult) -> None:
        """With the counts of the compaction, and the freshness that it reached."""
        written = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=result.metrics["records_written"],
            size=result.metrics["bytes_written"],
            fileCount=result.metrics["operations"],
        )
        self._emit(
            lineage.RunState.COMPLETE,
            CompactionFacet(result.instant, dict(result.metrics)),
            dataset={
                "version": facets.dataset_version_dataset.DatasetVersionDatasetFacet(result.instant),
                "eventide_freshness": FreshnessFacet.of(result.freshness),
            },
            output={"outputStatistics": written},
        )
        self._client.close()

    def abort(self, instant: str, error: BaseException) -> None:
        self._end(lineage.RunState.ABORT, instant, error)

    def fail(self, instant: str, error: BaseException) -> None:
        self._end(lineage.RunState.FAIL, instant, error)

    def _end(self, state: lineage.RunState, instant: str, error: BaseException) -> None:
        message = facets.error_message_run.ErrorMessageRunFacet(sanitize(error) or type(error).__name__, "PYTHON")
        self._emit(state, CompactionFacet(instant), run={"errorMessage": message})
        self._client.close()

    def _emit(
        self,
        state: lineage.RunState,
        compaction: CompactionFacet,
        *,
        run: dict[str, Any] | None = None,
        dataset: dict[str, Any] | None = None,
        output: dict[str, Any] | None = None,
    ) -> None:
        engine = facets.processing_engine_run.ProcessingEngineRunFacet(version("eventide"), "eventide")
        self._client.emit(
            lineage.RunEvent(
                eventType=state,
                eventTime=datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).isoformat(timespec="milliseconds"),
                run=lineage.Run(
                    self._run_id, {"processing_engine": engine, "eventide_compaction": compaction, **(run or {})}
                ),
                job=self._job,
                producer=PRODUCER,
                inputs=[lineage.InputDataset(*self._dataset)],
                outputs=[lineage.OutputDataset(*self._dataset, facets=dataset or {}, outputFacets=output or {})],
            )
        )


def dataset_of(root: str) -> tuple[str, str]:
    """The namespace and the name of a table by OpenLineage's naming conventions, without secrets."""
    parts = urlsplit(root)
    if parts.scheme in ("", "file"):
        return "file", parts.path
    scheme = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}.get(parts.scheme, parts.scheme)
    # On Azure, the container is before the @; elsewhere, a user is.
    place = parts.netloc if scheme.startswith("abfs") else parts.netloc.rpartition("@")[2]
    return f"{scheme}://{place}", parts.path if scheme in ("hdfs", "webhdfs") else parts.path.strip("/")


def _iso(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_timestamp(milliseconds)
