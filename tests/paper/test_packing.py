"""Eight bits and a scale per row: close, right on average, exact where it must be."""

import pytest
import torch

from engram.paper.packing import pack, pack_all, unpack, unpack_all


def matrix(signed: bool) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(6, 400, generator=generator)
    if not signed:
        values = (values * 2).exp()  # importance spans orders of magnitude
    return values * torch.tensor([1.0, 1e-6, 1e3, 1.0, 1.0, 1.0])[:, None]


@pytest.mark.parametrize("signed", [True, False])
def test_every_value_lies_within_one_level(signed):
    values = matrix(signed)
    codes, scale = pack(values, torch.Generator().manual_seed(1))
    assert codes.dtype == (torch.int8 if signed else torch.uint8)
    assert codes.numel() + scale.numel() * 4 < 0.27 * values.numel() * 4
    unit = values / scale
    # the distance to the next level: 1/127 everywhere, or the slope of the square, 2·√u/255
    level = torch.full_like(unit, 1 / 127) if signed else 2 * unit.sqrt() / 255 + 1 / 255**2
    assert ((unpack(codes, scale) / scale - unit).abs() <= level * 1.001).all()


@pytest.mark.parametrize("signed", [True, False])
def test_rounding_is_right_on_average(signed):
    values = matrix(signed)
    mean = torch.stack([unpack(*pack(values, torch.Generator().manual_seed(i))) for i in range(400)]).mean(dim=0)
    error = (mean - values) / values.abs().amax(dim=1, keepdim=True)
    assert error.abs().max() < 5 * (1 / 127) / 400**0.5
    assert error.mean().abs() < 1e-4


def test_small_additions_add_up():
    """Three hundred additions of a tenth of a level each are not lost, as plain rounding would lose them."""
    omega = torch.full((1, 500), 0.25)
    omega[0, 0] = 1.0  # sets the scale
    generator = torch.Generator().manual_seed(0)
    step = 0.1 * 2 * 0.5 / 255
    for _ in range(300):
        omega[:, 1:] += step
        omega = unpack(*pack(omega, generator))
    assert omega[0, 1:].mean().item() == pytest.approx(0.25 + 300 * step, rel=0.03)


def test_packing_what_was_packed_changes_nothing():
    once = unpack(*pack(matrix(True), torch.Generator().manual_seed(0)))
    again = unpack(*pack(once, torch.Generator().manual_seed(9)))
    torch.testing.assert_close(once, again, rtol=1e-5, atol=0.0)


def test_four_bits_take_half_the_room_and_are_right_on_average():
    values = matrix(signed=False)

    def packed(seed):
        return pack_all({"omega": values}, torch.Generator().manual_seed(seed), bits=4)

    kept = packed(0)
    assert kept["omega.nibbles"].shape == (6, 200)
    assert kept["omega.nibbles"].dtype == torch.uint8
    scale = kept["omega.scale"]
    unit = values / scale
    level = 2 * unit.sqrt() / 15 + 1 / 15**2
    assert ((unpack_all(kept)["omega"] / scale - unit).abs() <= level * 1.001).all()
    mean = torch.stack([unpack_all(packed(seed))["omega"] for seed in range(400)]).mean(dim=0)
    assert ((mean - values) / scale).abs().max() < 5 * (2 / 15) / 400**0.5


def test_what_does_not_fit_into_four_bits_keeps_eight():
    generator = torch.Generator().manual_seed(0)
    for values in (torch.rand(3, 5), torch.randn(3, 4)):  # rows of odd length; negative entries
        packed = pack_all({"w": values}, generator, bits=4)
        assert packed.keys() == {"w.codes", "w.scale"}
        torch.testing.assert_close(unpack_all(packed)["w"], values, rtol=0, atol=0.03 * values.abs().max().item())


def test_rows_of_zeros_and_vectors_pass():
    tensors = {"w": torch.zeros(3, 4), "b": torch.tensor([0.1, -0.2])}
    back = unpack_all(pack_all(tensors, torch.Generator().manual_seed(0)))
    assert back.keys() == tensors.keys()
    assert torch.equal(back["w"], tensors["w"])
    assert back["b"] is tensors["b"]


def test_with_all_bits_nothing_is_changed():
    tensors = {"w": torch.randn(3, 4), "b": torch.randn(2)}
    assert pack_all(tensors, torch.Generator().manual_seed(0), bits=32) == tensors
