"""Every form of model file answers, and goes on, as it did when it was written; and so does what is taught the same."""

import pytest
from goldens import IMPLEMENTATIONS, OLDER, ask, ask_after, compare, expected, make
from recipes import RECIPES

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture(params=IMPLEMENTATIONS)
def kind(request):
    return IMPLEMENTATIONS[request.param]


@pytest.mark.parametrize("name", RECIPES)
def test_an_older_file_answers_as_it_did(name, kind):
    compare(ask(kind.open(OLDER / f"{name}.engram"), RECIPES[name]), expected(name)["asked"], {})


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].keeps != "slim"])
def test_an_older_file_learns_on_as_it_did(name, kind):
    wanted = expected(name)
    found = ask_after(kind.open(OLDER / f"{name}.engram"), RECIPES[name])
    compare(found, wanted["learned"], wanted["tolerance"].get("learned", {}))


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].again])
def test_what_is_taught_the_same_answers_the_same(name, kind):
    """Or merged, or subtracted."""
    wanted = expected(name)
    compare(ask(make(kind, name), RECIPES[name]), wanted["asked"], wanted["tolerance"].get("taught", {}))


@pytest.mark.parametrize("name", [name for name in RECIPES if RECIPES[name].keeps == "slim"])
def test_a_slim_file_answers_and_learns_no_more(name, kind):
    model = kind.open(OLDER / f"{name}.engram")
    with pytest.raises(ValueError, match="slim"):
        model.learn(*RECIPES[name].further())
