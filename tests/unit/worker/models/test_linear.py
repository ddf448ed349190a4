import pytest
import torch

from zerolayer_worker.models.linear import Linear, kernel_name


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("rows", "inner", "outer"), [(1, 64, 96), (5, 17, 33), (40, 576, 960)])
def test_multiplies(rows: int, inner: int, outer: int, bias: bool) -> None:
    weight, x = torch.randn(outer, inner), torch.randn(rows, inner)
    b = torch.randn(outer) if bias else None
    expected = torch.nn.functional.linear(x.double(), weight.double(), None if b is None else b.double())
    torch.testing.assert_close(Linear(weight, b)(x).double(), expected, rtol=1e-5, atol=1e-4)


def test_rows_have_the_same_bits_beside_any_others() -> None:
    """Where this does not hold, the self-test at start-up has to find a number of rows for which it does."""
    product, x = Linear(torch.randn(192, 64)), torch.randn(16, 64)
    every = product(x)
    assert all(torch.equal(product(x[:rows]), every[:rows]) for rows in range(1, 17))


def test_names_its_library() -> None:
    assert kernel_name(torch.device("cuda"), torch.bfloat16) == "torch-cuda"
    assert kernel_name(torch.device("cpu"), torch.float32) in {"onednn-packed", "torch-cpu"}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_multiplies_types_that_the_cpu_may_not_pack(dtype: torch.dtype) -> None:
    weight, x = torch.randn(33, 64).to(dtype), torch.randn(3, 64).to(dtype)
    expected = x.float() @ weight.float().T
    torch.testing.assert_close(Linear(weight)(x).float(), expected, rtol=2e-2, atol=1e-1)
