"""Every method in torch, behind its adapter, passes every check and is what it says it is."""

import functools

import numpy as np
import pytest
import torch
from every import RESEARCH, kind_of, make

from engram.learners.base import State
from engram.learners.trying import teach
from engram.paper.adapter import Adapter
from engram.testing import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", RESEARCH)
def test_check_learner(name, check):
    check(lambda: make(name))


@pytest.mark.gpu
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", RESEARCH)
def test_check_learner_on_a_gpu(name, check):
    """The training steps are captured there, which not every operation allows."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # else sums are added up in any order, and bits differ
    try:
        check(lambda: make(name, device="cuda"))
    finally:
        torch.use_deterministic_algorithms(before)


@pytest.mark.parametrize("name", RESEARCH)
@pytest.mark.parametrize("labels", [["a"], ["a", "a"], ["a", 3], ["a", "b", "c"]], ids=str)
def test_a_state_whose_labels_do_not_fit_is_refused(name, labels):
    state = teach(functools.partial(make, name), ["a", "b"]).state()
    with pytest.raises(ValueError, match=r"fit together|samples.targets holds 1"):
        kind_of(name).from_state(State(state.arrays, {**state.meta, "labels": labels}))


@pytest.mark.parametrize("name", [name for name in RESEARCH if issubclass(kind_of(name), Adapter)])
def test_an_array_that_is_missing_misshapen_or_one_too_many_is_refused(name):
    state = teach(functools.partial(make, name), ["a", "b"]).state()
    for array in state.arrays:
        for wrong in (
            {n: a for n, a in state.arrays.items() if n != array},
            state.arrays | {array: state.arrays[array][..., None]},
            state.arrays | {f"{array}.more": np.zeros(2, np.float32)},
        ):
            with pytest.raises(ValueError, match=array.split(".")[0]):
                kind_of(name).from_state(State(wrong, state.meta))


@pytest.mark.parametrize("name", RESEARCH)
def test_every_method_says_what_it_is(name):
    about = kind_of(name).about
    assert about.title
    assert "20" in about.paper or "19" in about.paper
    assert about.per_class
    assert about.keeps_samples <= bool(about.given)  # who keeps samples is given more than the others
