"""Two processes that share every batch train what one process trains."""

import pytest
import torch
from trainings import SHARED, TRAININGS, take_part, train_all

DTYPES = [torch.float32, torch.float64]


@pytest.fixture(scope="module")
def two(tmp_path_factory, processes) -> list[dict]:
    """What each of two processes found."""
    folder = tmp_path_factory.mktemp("two")
    started = [processes.Process(target=take_part, args=(folder, number), daemon=True) for number in range(2)]
    for process in started:
        process.start()
    try:
        for process in started:
            process.join(timeout=120)
        assert [process.exitcode for process in started] == [0, 0]
    finally:
        for process in started:
            process.kill()
    return [torch.load(folder / f"{number}.pt") for number in range(2)]


@pytest.fixture(scope="module")
def one() -> dict:
    return {dtype: train_all(dtype) for dtype in DTYPES}


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_two_processes_train_what_one_does(name, dtype, one, two):
    """In float32, too; only in float64 is what differs by more than 1e-10 certainly not rounding."""
    losses, tensors, _ = one[dtype][name]
    bar = 1e-5 if dtype == torch.float32 else 1e-10
    for each in two:
        their_losses, theirs, _ = each[dtype][name]
        assert [loss[:2] for loss in their_losses] == [loss[:2] for loss in losses]
        assert [loss[2] for loss in their_losses] == pytest.approx([loss[2] for loss in losses], rel=bar)
        assert theirs.keys() == tensors.keys()
        for key, tensor in tensors.items():
            apart = (theirs[key] - tensor).double().norm() / tensor.double().norm()
            assert apart <= bar, f"{key}: {apart:.1e}"


@pytest.mark.parametrize("name", TRAININGS)
def test_both_end_with_the_same_bits(name, two):
    for dtype in DTYPES:
        (losses, tensors, _), (their_losses, theirs, _) = (each[dtype][name] for each in two)
        assert losses == their_losses
        assert all(torch.equal(tensor, theirs[key]) for key, tensor in tensors.items())


@pytest.mark.parametrize("name", SHARED)
def test_each_does_half_of_the_work(name, one, two):
    """A little more: the codes of all samples after training are everybody's."""
    alone = one[torch.float32][name][2]
    assert all(each[torch.float32][name][2] < 0.65 * alone for each in two)


def test_what_the_first_one_reads_and_stumbles_over_reaches_all(two):
    assert [(each["read"], each["error"]) for each in two] == [(0, "process 0")] * 2
