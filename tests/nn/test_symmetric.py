"""Triangles in half the room, and rounding at random."""

import pytest
import torch

from engram.nn.symmetric import add, pack, round_to, unpack_triangle


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 10])
def test_packing_keeps_the_upper_triangle_in_half_the_room(d: int):
    matrix = torch.randn(d, d, generator=generator(d))
    packed = pack(matrix)
    assert packed.shape == ((d + 1) // 2, d + 1)
    assert torch.equal(unpack_triangle(packed, torch.float32), matrix.triu())
    assert unpack_triangle(packed, torch.float64).dtype == torch.float64


@pytest.mark.parametrize("d", [5, 6])
def test_sums_of_packed_matrices_are_packed_sums(d: int):
    one, two = torch.randn(2, d, d, generator=generator())
    assert torch.equal(unpack_triangle(pack(one) + pack(two), torch.float32), (one + two).triu())


@pytest.mark.parametrize(("bits", "dtype"), [(16, torch.float16), (32, torch.float32), (64, torch.float64)])
def test_bits_are_those_of_the_number(bits: int, dtype: torch.dtype):
    values = torch.tensor([1.5, -0.25, 0.0, 1024.0, -65504.0])  # all of them exact in 16 bits: nothing to round
    rounded = round_to(values, bits, generator())
    assert rounded.dtype == dtype
    assert torch.equal(rounded.float(), values)


def test_rounding_goes_to_one_of_the_two_neighbours_and_is_right_on_average():
    values = torch.randn(200, generator=generator()) * 10.0 ** torch.randint(-3, 4, (200,), generator=generator())
    values[:4] = torch.tensor([1 / 3, -1 / 3, 1 - 2**-12, 2 + 2**-20])
    draws = torch.stack([round_to(values, 16, generator(seed)) for seed in range(2000)]).double()
    nearest = values.half()
    exact = nearest.double()
    step = torch.where(values.double() > exact, torch.inf, -torch.inf).half()
    other = torch.nextafter(nearest, step).double()
    assert ((draws == exact) | (draws == other)).all()
    ulp = (other - exact).abs()
    assert ((draws.mean(dim=0) - values).abs() < 0.06 * ulp).all()  # 5 standard errors are .056
    assert (draws.std(dim=0)[:2] > 0.3 * ulp[:2]).all()


def test_small_sums_do_not_vanish_in_a_large_one():
    """2,000 times 1/4 of an ulp, added to 1: rounded to the nearest, it would stay 1."""
    total = torch.ones(500).half()
    random = generator()
    for _ in range(2000):
        total = round_to(total.float() + 2**-12, 16, random)
    assert float(total.float().mean()) == pytest.approx(1 + 2000 * 2**-12, rel=0.002)


def test_a_seed_repeats_the_rounding():
    values = torch.randn(100, generator=generator())
    assert torch.equal(round_to(values, 16, generator(3)), round_to(values, 16, generator(3)))
    assert not torch.equal(round_to(values, 16, generator(3)), round_to(values, 16, generator(4)))


def test_a_strided_view_is_rounded_as_its_numbers():
    values = torch.randn(6, 8, generator=generator())[:, ::2].T
    assert torch.equal(round_to(values, 16, generator()), round_to(values.contiguous(), 16, generator()))


@pytest.mark.parametrize("value", [65_536.0, -1e6, torch.inf, torch.nan])
def test_what_16_bits_cannot_hold_is_refused(value: float):
    with pytest.raises(ValueError, match="too far from those learned before"):
        round_to(torch.tensor([1.0, value]), 16, generator())
    if abs(value) < torch.inf:
        assert round_to(torch.tensor([value]), 32, generator()).tolist() == [value]


@pytest.mark.parametrize("bits", [32, 64])
def test_adding_is_adding_in_units_of_the_mean_diagonal(bits: int):
    one, two = (a @ a.T for a in torch.randn(2, 5, 5, generator=generator()).double())
    kept, unit = add(None, None, one, bits, generator())
    assert float(unit) == pytest.approx(float(one.diagonal().mean()), rel=1e-12)
    kept, unit = add(kept, unit, two, bits, generator())
    assert float(unit) == pytest.approx(float((one + two).diagonal().mean()), rel=1e-6)
    assert float(unpack_triangle(kept, torch.float64).diagonal().mean()) == pytest.approx(1, rel=1e-6)
    torch.testing.assert_close(unpack_triangle(kept, torch.float64) * unit, (one + two).triu(), rtol=1e-5, atol=1e-5)


def test_nothing_added_is_kept_as_nothing():
    kept, unit = add(None, None, torch.zeros(3, 3), 16, generator())
    assert float(unit) == 0
    assert not kept.any()
    kept, unit = add(kept, unit, torch.eye(3) * 7, 16, generator())
    assert torch.equal(unpack_triangle(kept, torch.float32) * unit, torch.eye(3) * 7)
