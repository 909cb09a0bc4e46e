"""Settings and fixtures that all tests share."""

import gc
import os
from functools import partial

import pytest
from hypothesis import HealthCheck, settings

from krein.compare.workers import processors

from .market import EXACT, MARKET

# on a busy machine examples are generated slowly, which says nothing about the code
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("calm", calm)
# CI tries the same examples in every run; elsewhere, each run tries new ones
settings.register_profile("decisive", calm, derandomize=True)
settings.load_profile("decisive" if os.environ.get("CI") else "calm")


@pytest.hookimpl(optionalhook=True)  # pytest-xdist is not installed everywhere
def pytest_xdist_auto_num_workers():
    """Run one worker more than there are processors: some tests wait for other processes."""
    return processors() + 1


def pytest_collection_finish():
    """Leave modules and collected tests, which stay to the end, out of garbage collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _few_steps_of_tsne():
    """Evaluations draw a map, which takes most of their time; no test depends on its quality."""
    from sklearn import manifold

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifold, "TSNE", partial(manifold.TSNE, max_iter=250, min_grad_norm=1e9))
        yield


@pytest.fixture(params=MARKET, ids=lambda case: case.name)
def case(request):
    return request.param


@pytest.fixture(params=EXACT, ids=lambda case: case.name)
def exact(request):
    return request.param
