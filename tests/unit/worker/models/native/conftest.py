from collections.abc import Iterator

import pytest

from zerolayer_worker.models.native.library import Kernels


@pytest.fixture(scope="module", params=[1, 2, 3])
def kernels(request: pytest.FixtureRequest) -> Iterator[Kernels]:
    opened = Kernels(request.param)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def one() -> Iterator[Kernels]:
    opened = Kernels(1)
    yield opened
    opened.close()
