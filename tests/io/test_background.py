"""Items that have arrived are used without waiting for others."""

import threading

import pytest

from krein.io.streams import AHEAD, BackgroundReader


def test_items_come_in_order_whatever_the_requests():
    items = BackgroundReader(range(3 * AHEAD))
    found = []
    for most in [1, 7, AHEAD + 5, 2, 4 * AHEAD, 4 * AHEAD, 4 * AHEAD]:
        part = items.take(most, wait=0.01)
        assert len(part) <= most
        found += part
    assert [*found, *items] == list(range(3 * AHEAD))
    assert items.take(1) == []


def test_items_that_have_arrived_do_not_wait_for_the_rest():
    go_on = threading.Event()

    def slow():
        yield "a"
        yield "b"
        go_on.wait()
        yield "c"

    items = BackgroundReader(slow())
    assert items.take(10, wait=0.05, least=2) == ["a", "b"]
    go_on.set()
    assert items.take(10, wait=60) == ["c"]


def test_an_error_follows_the_items_before_it():
    def broken():
        yield 1
        yield 2
        raise ValueError("line 3")

    items = BackgroundReader(broken())
    assert items.take(10, wait=60) == [1, 2]
    for _ in range(2):
        with pytest.raises(ValueError, match="line 3"):
            items.take(10)


def test_reading_stops_after_close():
    read = []

    def endless():
        while True:
            read.append(None)
            yield None

    items = BackgroundReader(endless())
    items.take(5)
    items.close()
    items._thread.join(60)
    assert not items._thread.is_alive()
    assert len(read) <= AHEAD + 7
