"""What every test shares."""

import os

import pytest
from hypothesis import settings

from .market import EXACT, MARKET

# elsewhere every run tries other examples; where a run decides, the same ones each time
settings.register_profile("decisive", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("decisive")


@pytest.fixture(params=MARKET, ids=lambda case: case.name)
def case(request):
    return request.param


@pytest.fixture(params=EXACT, ids=lambda case: case.name)
def exact(request):
    return request.param
