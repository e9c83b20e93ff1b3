"""Threads share a classifier: every answer is of one moment, and changes take turns."""

import copy
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from engram import IncrementalClassifier
from engram.learners import registry
from engram.learners.base import quiet
from engram.learners.ncm import NCM
from engram.testing import blobs

X, _ = blobs(["a", "b"], n=4, seed=1)


class Watched(NCM):
    """Nearest class mean; a test may do something between its score and what is made of it, or while it learns."""

    method = "watched"
    scored: Callable[[], object] = staticmethod(lambda: None)
    learning: Callable[[NCM], object] = staticmethod(lambda learner: None)

    def score(self, x):
        found = super().score(x)
        Watched.scored()
        return found

    def learn(self, x, y, tell=quiet):
        Watched.learning(self)
        return super().learn(x, y)


@pytest.fixture(autouse=True)
def watched(monkeypatch):
    monkeypatch.setitem(registry.BUILT_IN, "watched", f"{__name__}:Watched")


def join(thread):
    thread.start()
    thread.join()


@pytest.mark.parametrize("ask", ["predict", "nearest", "predict_proba", "decision_function", "familiarity"])
def test_an_answer_is_of_one_moment(ask, monkeypatch):
    clf = IncrementalClassifier("watched").fit(*blobs(["a", "b", "c"]))
    expected = getattr(clf, ask)(X)
    pauses = iter([lambda: join(threading.Thread(target=clf.forget, args=("a",)))])
    monkeypatch.setattr(Watched, "scored", lambda: next(pauses, lambda: None)())
    found = getattr(clf, ask)(X)
    for was, now in zip(np.atleast_1d(expected), np.atleast_1d(found), strict=True):
        assert np.array_equal(was, now)
    assert clf.classes_.tolist() == ["b", "c"]


def test_no_class_is_lost_when_threads_teach_at_once():
    names = [f"{letter}{i}" for i in range(6) for letter in "abcdefg"]
    clf = IncrementalClassifier("ncm")  # the first of them begins the model
    began = threading.Barrier(3)

    def teach(own: list[str]) -> None:
        began.wait()
        for name in own:
            clf.partial_fit(*blobs([name], n=3))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(teach, [names[::3], names[1::3], names[2::3]]))
    assert clf.classes_.tolist() == sorted(names)
    assert clf.counts_.tolist() == [3] * len(names)
    assert clf.learner_.updates == len(names)


def test_changes_take_turns_and_reading_waits_for_none(monkeypatch):
    inside, may_end = threading.Event(), threading.Event()

    def wait(learner: NCM) -> None:
        if learner.labels == ("a", "b") and not inside.is_set():
            inside.set()
            assert may_end.wait(30)

    monkeypatch.setattr(Watched, "learning", staticmethod(wait))
    clf = IncrementalClassifier("watched").fit(*blobs(["a", "b"]))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(clf.partial_fit, *blobs(["c"]))
        assert inside.wait(30)
        second = threads.submit(clf.partial_fit, *blobs(["d"]))
        assert set(clf.predict(X)) <= {"a", "b"}
        may_end.set()
        first.result(30)
        second.result(30)
    assert clf.classes_.tolist() == ["a", "b", "c", "d"]


def test_a_failed_change_leaves_the_lock_free_and_the_rest_as_it_was():
    clf = IncrementalClassifier("ncm").fit(*blobs(["a", "b"]))
    before = dict(vars(clf))
    for change in (
        lambda: clf.partial_fit(X, [1] * len(X)),
        lambda: clf.forget("nobody"),
        lambda: clf.fit(np.full((2, 5), np.nan), ["a", "b"]),
    ):
        with pytest.raises(ValueError, match=r"."):
            change()
    assert vars(clf) == before
    join(threading.Thread(target=clf.partial_fit, args=blobs(["c"])))
    assert clf.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda clf: pickle.loads(pickle.dumps(clf))])
def test_copies_have_a_lock_of_their_own(again):
    clf = IncrementalClassifier("ncm").fit(*blobs(["a", "b"]))
    other = again(clf)
    with clf._turn:
        join(threading.Thread(target=other.partial_fit, args=blobs(["c"])))
    assert (clf.classes_.tolist(), other.classes_.tolist()) == (["a", "b"], ["a", "b", "c"])
    assert not hasattr(clone(other), "model_")
