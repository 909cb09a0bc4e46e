"""Settings and fixtures that all tests share."""

import os

import pytest
from hypothesis import HealthCheck, settings

from .market import EXACT, MARKET

# on a busy machine examples are generated slowly, which says nothing about the code
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("calm", calm)
# CI tries the same examples in every run; elsewhere, each run tries new ones
settings.register_profile("decisive", calm, derandomize=True)
settings.load_profile("decisive" if os.environ.get("CI") else "calm")


@pytest.fixture(params=MARKET, ids=lambda case: case.name)
def case(request):
    return request.param


@pytest.fixture(params=EXACT, ids=lambda case: case.name)
def exact(request):
    return request.param
