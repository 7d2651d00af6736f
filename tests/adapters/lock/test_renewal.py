import threading

from eventide_adapters.lock.renewal import Renewal
from eventide_core.errors import StorageError


def test_a_failed_renewal_is_repeated_and_a_lost_lease_is_not() -> None:
    calls: list[bool] = []
    lost = threading.Event()

    def renew() -> bool:
        calls.append(True)
        if len(calls) == 1:
            raise StorageError("the storage did not answer")
        if len(calls) == 3:
            lost.set()
        return len(calls) < 3

    renewal = Renewal(renew, interval_seconds=0.001)
    assert lost.wait(60)
    renewal.stop()
    assert len(calls) == 3


def test_no_renewal_follows_a_stop() -> None:
    renewed = threading.Event()
    calls: list[bool] = []

    def renew() -> bool:
        calls.append(True)
        renewed.set()
        return True

    renewal = Renewal(renew, interval_seconds=0.001)
    assert renewed.wait(60)
    renewal.stop()
    before = len(calls)
    renewed.clear()
    assert not renewed.wait(0.05)
    assert len(calls) == before
