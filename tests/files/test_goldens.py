"""Every form of model file answers, and goes on, as it did when it was written; and so does what is taught the same."""

import pytest
from goldens import OLDER, Subject, ask, ask_after, compare, expected, make, rounded
from recipes import RECIPES
from toys import missing

DRAWN = "1nn-few"  # which samples it keeps is drawn at random, otherwise than it was


def require(name: str, *, teaching: bool = False) -> None:
    """Skip what takes an extra that is not here."""
    method = name if name == "whitened-encoder" else RECIPES[name].method
    if reason := missing(method, teaching=teaching):
        pytest.skip(reason)


@pytest.mark.parametrize("name", RECIPES)
def test_an_older_file_answers_as_it_did(name):
    require(name)
    compare(
        ask(Subject.open(OLDER / f"{name}.engram"), RECIPES[name]),
        expected(name)["asked"],
        {"left_out_probabilities": 5e-4},
    )


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].keeps != "slim" and name != DRAWN])
def test_an_older_file_learns_on_as_it_did(name):
    require(name, teaching=True)
    wanted = expected(name)
    found = ask_after(Subject.open(OLDER / f"{name}.engram"), RECIPES[name])
    compare(found, wanted["learned"], rounded(wanted["tolerance"].get("learned", {})))


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].again and name != DRAWN])
def test_what_is_taught_the_same_answers_the_same(name):
    """Or merged, or subtracted."""
    require(name, teaching=True)
    wanted = expected(name)
    compare(ask(make(name), RECIPES[name]), wanted["asked"], rounded(wanted["tolerance"].get("taught", {})))


@pytest.mark.parametrize("name", ["slda-slim", "ranpac-slim", "mas-lof-slim"])  # whitened-slim lacks nothing
def test_a_slim_file_learns_no_more(name):
    require(name, teaching=True)
    model = Subject.open(OLDER / f"{name}.engram")
    with pytest.raises(ValueError, match="slim"):
        model.learn(*RECIPES[name].further())
