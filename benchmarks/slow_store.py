"""`python -m benchmarks.slow_store`: a compaction on a substitute for S3, beside the mere transfer of the same bytes.

The substitute keeps objects in memory. Each request takes 30 ms, and each connection delivers 80 MB/s, so that waiting costs
what it costs on S3, and processor time is eventide's alone. The transfer downloads the base files and log files, and then
uploads the new base files, as many slices at a time as the compaction, with the same storage. The computation is the same
compaction without any delay. Prints the wall time of each as JSON: the least of all rounds, which take turns.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from benchmarks.growth import Point, grow
from eventide import Table
from eventide.bootstrap import assemble
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.object_storage import VersionedObjectStorage
from eventide_adapters.storage.objects.s3 import S3Objects
from eventide_adapters.storage.objects.s3_config import S3Config
from eventide_core.config import Options
from eventide_core.ports import Storage

AT_ONCE = 2  # the slices that a compaction merges at a time on two cores
_CHUNK_BYTES = 1 << 20


@dataclass
class Bucket:
    """The objects of one bucket with their metadata, and the parts of unfinished uploads."""

    objects: dict[str, tuple[bytes, dict[str, str]]] = field(default_factory=dict[str, tuple[bytes, dict[str, str]]])
    uploads: dict[str, tuple[dict[str, str], dict[int, bytes]]] = field(
        default_factory=dict[str, tuple[dict[str, str], dict[int, bytes]]]
    )
    request_s: float = 0.0
    bytes_per_s: float = float("inf")


BUCKETS: dict[str, Bucket] = {}


class SlowS3(S3Objects):
    """The requests of S3Objects, answered from memory after a delay."""

    def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        bucket = BUCKETS[self.bucket]
        try:
            answer = _answered(bucket, operation, arguments)
        except OSError:
            time.sleep(bucket.request_s)
            raise
        moved = len(arguments.get("Body", b"")) + (len(answer["Body"]) if "Body" in answer else 0)
        if bucket.request_s:
            time.sleep(bucket.request_s + moved / bucket.bytes_per_s)
        return answer

    def _read_body(self, body: Any) -> bytes:
        return bytes(body)


def _answered(bucket: Bucket, operation: str, given: dict[str, Any]) -> dict[str, Any]:
    key, now = given.get("Key", ""), {"LastModified": datetime.fromtimestamp(0, UTC), "ETag": "1"}
    if "IfNoneMatch" in given and key in bucket.objects:
        raise OSError("taken") from ClientError({"Error": {"Code": "PreconditionFailed", "Message": ""}}, operation)
    if operation in ("head_object", "get_object") and key not in bucket.objects:
        raise FileNotFoundError(key)
    match operation:
        case "head_object":
            data, mark = bucket.objects[key]
            return now | {"ContentLength": len(data), "Metadata": mark}
        case "get_object":
            first, _, last = given.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
            body = bucket.objects[key][0][int(first) : int(last) + 1 if last else None]
            return now | {"Body": body, "ContentLength": len(body)}
        case "put_object":
            bucket.objects[key] = (bytes(given["Body"]), given.get("Metadata", {}))
        case "delete_object":
            bucket.objects.pop(key, None)
        case "create_multipart_upload":
            name = str(len(bucket.uploads))
            bucket.uploads[name] = (given["Metadata"], {})
            return {"UploadId": name}
        case "upload_part":
            bucket.uploads[given["UploadId"]][1][given["PartNumber"]] = bytes(given["Body"])
            return {"ETag": "1"}
        case "upload_part_copy":
            source = bucket.objects[given["CopySource"]["Key"]][0]
            bucket.uploads[given["UploadId"]][1][given["PartNumber"]] = source
            return {"CopyPartResult": {"ETag": "1"}}
        case "complete_multipart_upload":
            mark, parts = bucket.uploads[given["UploadId"]]
            bucket.objects[key] = (b"".join(parts[number] for number in sorted(parts)), mark)
        case "abort_multipart_upload":
            bucket.uploads.pop(given["UploadId"], None)
        case "list_objects_v2":
            prefix = given["Prefix"]
            below = {name[len(prefix) :]: name for name in sorted(bucket.objects) if name.startswith(prefix)}
            files = [
                now | {"Key": name, "Size": len(bucket.objects[name][0])} for n, name in below.items() if "/" not in n
            ]
            names = sorted({prefix + n.partition("/")[0] + "/" for n in below if "/" in n})
            return {"Contents": files, "CommonPrefixes": [{"Prefix": name} for name in names]}
        case _:
            raise AssertionError(operation)
    return now


def storage_of(name: str, table: Path) -> Storage:
    """A storage with a copy of the table."""
    BUCKETS[name] = Bucket()
    found = VersionedObjectStorage(f"s3://{name}/table", "table/", SlowS3(name, S3Config.of(Options({}))))
    local, waiting = LocalStorage(table), [""]
    while waiting:
        for entry in local.list(waiting.pop()):
            if entry.is_directory:
                waiting.append(entry.path)
            else:
                found.put(entry.path, local.read(entry.path))
    assert found.capabilities
    return found


def data_files(storage: Storage) -> dict[str, int]:
    """The size of each base file and log file."""
    directories = ["", *(entry.path for entry in storage.list("") if entry.is_directory and entry.path != ".hoodie")]
    found = [entry for directory in directories for entry in storage.list(directory) if not entry.is_directory]
    return {entry.path: entry.size for entry in found if entry.path.endswith(".parquet") or ".log." in entry.path}


def transfer(storage: Storage, read: list[list[str]], written: list[int]) -> None:
    """Downloads the files of each slice, then uploads as many bytes as were written."""

    def move(slice_number: int) -> None:
        for path in read[slice_number]:
            with storage.open_input(path) as stream:
                stream.read()
        output, rest = storage.open_output(f"transferred-{slice_number}"), written[slice_number]
        while rest > 0:
            rest -= output.write(bytes(min(rest, _CHUNK_BYTES)))
        assert output.commit()

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(move, range(len(read))))


def measured(place: Path, point: Point, rounds: int, request_s: float, bytes_per_s: float) -> dict[str, float]:
    table = place / "table"
    grow(table, point)
    best: dict[str, float] = {}

    def timed(name: str, act: Callable[[], object]) -> None:
        began = time.monotonic()
        act()
        best[name] = min(best.get(name, float("inf")), time.monotonic() - began)

    def compact(storage: Storage) -> None:
        options = {"hoodie.parquet.compression.codec": "zstd"}
        opened = Table(storage.root, options, assemble(storage.root, options, storage=storage))
        opened.compact(data_latency_seconds=0)

    for number in range(rounds + 1):  # the first one loads the libraries, and does not count
        if number == 1:
            best.clear()
        storage = storage_of(f"free-{number}", table)
        timed("computation_s", lambda storage=storage: compact(storage))  # type: ignore[misc]
        storage = storage_of(f"slow-{number}", table)
        before = data_files(storage)
        bucket = BUCKETS[f"slow-{number}"]
        bucket.request_s, bucket.bytes_per_s = request_s, bytes_per_s
        timed("compaction_s", lambda storage=storage: compact(storage))  # type: ignore[misc]
        bucket.request_s = 0.0
        written = [size for path, size in data_files(storage).items() if path not in before]
        groups: dict[str, list[str]] = {}
        for path in before:
            groups.setdefault(path.rpartition("/")[2].lstrip(".").partition("_")[0], []).append(path)
        bucket.request_s = request_s
        timed(
            "transfer_s",
            lambda storage=storage, groups=groups, written=written: transfer(  # type: ignore[misc]
                storage, list(groups.values()), written
            ),
        )
        best["read_mb"], best["written_mb"] = sum(before.values()) / 1e6, sum(written) / 1e6
        BUCKETS.clear()
    return {name: round(value, 2) for name, value in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slow_store", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--slices", type=int, default=2)
    parser.add_argument("--logs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--request-ms", type=float, default=30)
    parser.add_argument("--mb-per-second", type=float, default=80, help="of one connection")
    said = parser.parse_args()
    point = Point(records=said.records, slices=said.slices, logs=said.logs, share=0.05)
    with tempfile.TemporaryDirectory() as place:
        found = measured(Path(place), point, said.rounds, said.request_ms / 1000, said.mb_per_second * 1e6)
    print(json.dumps(found | {"of_the_transfer": round(found["compaction_s"] / found["transfer_s"], 2)}))


if __name__ == "__main__":
    main()
