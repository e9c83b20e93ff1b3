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
from engram.methods.ncm import NCM
from engram.methods.whitened import Whitened
from engram.testing import blobs

X, _ = blobs(["a", "b"], n=4, seed=1)


class Slow(NCM):
    """Stops between reading a score and reading a label, until a change has been made."""

    method = "slow"
    pause: Callable[[], object] = staticmethod(lambda: None)

    def _nearest(self, features, k):
        found = super()._nearest(features, k)
        Slow.pause()
        return found

    def _scores(self, features):
        found = super()._scores(features)
        Slow.pause()
        return found

    def class_vectors(self):
        found = super().class_vectors()
        Slow.pause()
        return found

    def counts(self):
        found = super().counts()
        Slow.pause()
        return found


def forget_in_another_thread(clf, monkeypatch):
    """Make the next read of a score wait until class a, the first, is forgotten by another thread."""
    pauses = iter([lambda: join(threading.Thread(target=clf.forget, args=("a",)))])
    monkeypatch.setattr(Slow, "pause", lambda: next(pauses, lambda: None)())


def join(thread):
    thread.start()
    thread.join()


def test_labels_are_of_the_moment_of_the_scores(monkeypatch):
    for ask in ("predict", "nearest", "predict_proba", "decision_function"):
        clf = IncrementalClassifier(Slow, device="cpu").fit(*blobs(["a", "b", "c"]))
        expected = getattr(clf, ask)(X)
        forget_in_another_thread(clf, monkeypatch)
        found = getattr(clf, ask)(X)
        for was, now in zip(np.atleast_1d(expected), np.atleast_1d(found), strict=True):
            assert np.array_equal(was, now), ask
        assert clf.classes_.tolist() == ["b", "c"]


def test_so_it_is_with_a_learner_alone(monkeypatch):
    learner = Slow(device="cpu")
    learner.learn(*blobs(["a", "b", "c"]))
    expected = learner.predict(X).tolist()
    forget_in_another_thread(learner, monkeypatch)
    assert learner.predict(X).tolist() == expected
    assert learner.labels == ["b", "c"]


@pytest.mark.parametrize("what", ["class_vectors_", "counts_"])
def test_what_is_told_of_classes_is_of_one_moment(what, monkeypatch):
    clf = IncrementalClassifier(Slow, device="cpu").fit(*blobs(["a", "b", "c"]))
    forget_in_another_thread(clf, monkeypatch)
    assert len(getattr(clf, what)) == 3


def test_no_class_is_lost_when_threads_teach_at_once():
    names = [f"{letter}{i}" for i in range(6) for letter in "abcdefg"]
    clf = IncrementalClassifier("ncm", device="cpu")  # the first of them begins the model
    began = threading.Barrier(3)

    def teach(own: list[str]) -> None:
        began.wait()
        for name in own:
            clf.partial_fit(*blobs([name], n=3))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(teach, [names[::3], names[1::3], names[2::3]]))
    assert clf.classes_.tolist() == sorted(names)
    assert clf.counts_.tolist() == [3] * len(names)
    assert clf.learner_.tasks_learned == len(names)


def test_changes_take_turns():
    """A second change begins with what the first one made, however long that takes."""
    inside, may_end = threading.Event(), threading.Event()

    class Waits(NCM):
        method = "waits"

        def _tensors_after(self, task):
            if self.labels == ["a", "b"] and not inside.is_set():
                inside.set()
                assert may_end.wait(30)
            return super()._tensors_after(task)

    clf = IncrementalClassifier(Waits, device="cpu").fit(*blobs(["a", "b"]))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(clf.partial_fit, *blobs(["c"]))
        assert inside.wait(30)
        second = threads.submit(clf.partial_fit, *blobs(["d"]))
        assert set(clf.predict(X)) <= {"a", "b"}  # reading does not wait
        may_end.set()
        first.result(30)
        second.result(30)
    assert clf.classes_.tolist() == ["a", "b", "c", "d"]


def test_a_read_fills_the_scratch_memory_of_its_own_moment(monkeypatch):
    """And not that of a moment that has begun since."""
    learner = Whitened(device="cpu")
    learner.learn(*blobs(["a", "b", "c"]))
    whole = learner.class_vectors()
    learner.scratch = {}
    before, space = learner.scratch, Whitened._space

    def late(self):
        monkeypatch.setattr(Whitened, "_space", space)
        join(threading.Thread(target=learner.forget, args=("a",)))
        return space(self)

    monkeypatch.setattr(Whitened, "_space", late)
    assert np.array_equal(learner.class_vectors(), whole)
    assert len(before["means"]) == 3
    assert len(learner.class_vectors()) == 2
    assert learner.scratch  # kept for the next


def test_a_failed_change_leaves_the_lock_free_and_the_rest_as_it_was():
    clf = IncrementalClassifier("ncm", device="cpu").fit(*blobs(["a", "b"]))
    before = dict(vars(clf))
    with pytest.raises(ValueError, match="mix"):
        clf.partial_fit(X, [1] * len(X))
    with pytest.raises(ValueError, match="unknown class"):
        clf.forget("nobody")
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(np.full((2, 5), np.nan), ["a", "b"])
    assert vars(clf) == before
    join(threading.Thread(target=clf.partial_fit, args=blobs(["c"])))
    assert clf.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda clf: pickle.loads(pickle.dumps(clf))])
def test_copies_have_a_lock_of_their_own(again):
    clf = IncrementalClassifier("ncm", device="cpu").fit(*blobs(["a", "b"]))
    other = again(clf)
    with clf._turn:
        join(threading.Thread(target=other.partial_fit, args=blobs(["c"])))
    assert (clf.classes_.tolist(), other.classes_.tolist()) == (["a", "b"], ["a", "b", "c"])
    assert not hasattr(clone(other), "learner_")
