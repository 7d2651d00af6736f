from eventide_core.action.windows.progress import ConsumerProgress


def test_a_delivery_that_was_taken_over_long_ago_is_not_taken_to_be_done() -> None:
    progress = ConsumerProgress(0, 3600, "UTC", next_ms=0)
    for _ in range(1000):
        progress = progress.opened((0, 3_600_000), "runner", 0)
    assert [progress.is_taken_over(token) for token in (1, 500, 999, 1000)] == [True, True, True, False]
    assert len(progress.taken_over) < 1000
    ended = progress.done()
    assert not ended.is_taken_over(1000)
    assert ended.opened((3_600_000, 7_200_000), "runner", 0).taken_over == progress.taken_over
