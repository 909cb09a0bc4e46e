"""What every test shares."""

import pytest

from .market import EXACT, MARKET


@pytest.fixture(params=MARKET, ids=lambda case: case.name)
def case(request):
    return request.param


@pytest.fixture(params=EXACT, ids=lambda case: case.name)
def exact(request):
    return request.param
