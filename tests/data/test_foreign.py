"""Objects of another kind in a Dask collection are named by partition, here and on a cluster."""

import logging
import time
import warnings

import numpy as np
import pytest

from krein import KreinClassifier
from krein.data.foreign import ForeignObjectWarning

pytest.importorskip("distributed")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import dask.bag as db

from distributed import Client, LocalCluster

WORDS, LABELS = ["house", "mouse", "haus", "maus"] * 10, ["en", "en", "de", "de"] * 10
NEW = ["louse", "laus", "m" * 60, "spouse", "m" * 70, "m" * 80]


@pytest.fixture(scope="module")
def model():
    return KreinClassifier("levenshtein").fit(WORDS, LABELS)


def warned(model, scheduler, enough):
    bag = db.from_sequence(NEW, npartitions=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        p = model.novelty(bag).compute(scheduler=scheduler)
        found, until = [], time.monotonic() + 30
        while len(found) < enough and time.monotonic() < until:  # messages may arrive later
            found = [one.message for one in caught if isinstance(one.message, ForeignObjectWarning)]
            time.sleep(0.01)
    return p, sorted(found, key=str)


def check(p, found, there):
    np.testing.assert_array_equal(p == 0, [len(word) > 50 for word in NEW])
    np.testing.assert_array_equal(p, there)
    assert [list(one.rows.values()) for one in found] == [[[0]], [[0, 1]]]
    assert "partition 1, object 0" in str(found[0])
    assert "partition 2, object 0, partition 2, object 1" in str(found[1])


@pytest.mark.filterwarnings("ignore::krein.data.ForeignObjectWarning")
def test_partitions_in_this_process(model):
    there = model.novelty(NEW)
    check(*warned(model, "synchronous", 2), there)


@pytest.mark.filterwarnings("ignore::krein.data.ForeignObjectWarning")
def test_the_client_of_a_cluster_is_warned(model):
    there = model.novelty(NEW)
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster),
    ):
        check(*warned(model, None, 2), there)
