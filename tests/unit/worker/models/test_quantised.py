import pytest
import torch

from zerolayer_worker.models.quantised import GROUP, Format, blocked, expand

QUANTISED = (Format.INT8, Format.INT4)


def weights(rows: int = 10, columns: int = 64, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rows", [1, 4, 7])
def test_full_precision_is_only_laid_out_anew(rows: int) -> None:
    weight = weights(rows)
    assert torch.equal(expand(blocked(weight, Format.FLOAT32)), weight)
    assert torch.equal(expand(blocked(weight, Format.BFLOAT16)), weight.bfloat16().float())


@pytest.mark.parametrize("form", [Format.FLOAT32, *QUANTISED])
def test_a_row_is_beside_its_neighbours_group_by_group(form: Format) -> None:
    matrix = blocked(weights(8), form)
    assert matrix.data.shape[:3] == (2, 2, 4)
    swapped = blocked(weights(8)[[1, 0, 2, 3, 4, 5, 6, 7]], form)
    assert torch.equal(matrix.data[0, :, 0], swapped.data[0, :, 1])
    assert torch.equal(matrix.data[1], swapped.data[1])


@pytest.mark.parametrize(("form", "steps"), [(Format.INT8, 254), (Format.INT4, 15)])
def test_a_weight_is_off_by_half_a_step_of_its_group(form: Format, steps: int) -> None:
    weight = weights(12, 128)
    groups = weight.view(12, -1, GROUP)
    width = 2 * groups.abs().amax(-1) if form is Format.INT8 else groups.amax(-1) - groups.amin(-1)
    error = (expand(blocked(weight, form)) - weight).view_as(groups).abs().amax(-1)
    # Scale and offset themselves are rounded to fp16.
    assert bool((error <= 0.5 * width / steps + groups.abs().amax(-1) * 2**-10).all())
    assert float(error.max()) > 0


@pytest.mark.parametrize("form", QUANTISED)
def test_what_was_quantised_once_stays_as_it_is(form: Format) -> None:
    first = blocked(weights(32, 256), form)
    again = blocked(expand(first), form)
    assert torch.equal(expand(again), expand(first))
    assert torch.equal(again.data, first.data)


@pytest.mark.parametrize("form", QUANTISED)
def test_groups_without_spread(form: Format) -> None:
    weight = torch.zeros(4, 64)
    weight[1] = 0.5
    weight[2] = -3.0
    torch.testing.assert_close(expand(blocked(weight, form)), weight, rtol=1e-3, atol=0)


def test_what_cannot_be_laid_out_is_refused() -> None:
    with pytest.raises(ValueError, match="33 columns are not whole groups of 32"):
        blocked(torch.zeros(4, 33), Format.FLOAT32)
    for value in (float("nan"), float("inf")):
        for form in QUANTISED:
            with pytest.raises(ValueError, match="not finite"):
                blocked(torch.full((4, 32), value), form)
