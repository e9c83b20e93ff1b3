"""`check_learner`: what every method has to hold to, in the manner of scikit-learn's `check_estimator`.

Each check takes a factory that makes a fresh learner (small and quick: the checks teach it many times) and raises
AssertionError when the learner falls short. Bad input is refused by `Model`, so it is asked where that belongs.
"""

import contextlib
import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np

from engram.files import model_file
from engram.learners.base import GROUPS, Learner, LeavesOut, Mergeable, Progress, Subtracts, has_row_per_class
from engram.learners.trying import (
    Factory,
    assert_close,
    assert_same_state,
    blobs,
    copy_of,
    directions,
    predict,
    reachable_arrays,
    refusal,
    save_and_load,
    share_right,
    teach,
)
from engram.model import Model

ROUNDING = 2e-2  # what a state in 16 bits may change of the largest score


def check_learner(make: Factory) -> None:
    """Run every check."""
    for check in CHECKS:
        check(make)


def check_unseen_labels_are_accepted(make: Factory) -> None:
    """A label is announced by appearing, one or several at a time, and is then an answer."""
    learner = teach(make, ["a", "b"], ["c"], ["e", "d"])
    assert learner.labels[:3] == ("a", "b", "c"), learner.labels
    assert set(learner.labels) == set("abcde"), learner.labels
    tasks = ["de"] if learner.about.forgets else ["ab", "c", "de"]
    rights = [share_right(learner, task, list(task) if learner.about.told_the_task else None) for task in tasks]
    accuracy = np.average(rights, weights=[*map(len, tasks)])
    assert accuracy > 0.5, f"accuracy {accuracy} on well separated classes"


def check_only_known_labels_are_answers(make: Factory) -> None:
    """Whatever the input, the answer is a class that was taught; a forgotten or renamed one is not."""
    learner = teach(make, ["a", "b"])
    far = (np.random.default_rng(0).normal(size=(200, 8)) * 100).astype(np.float32)
    assert set(predict(learner, far)) <= {"a", "b"}
    learner = learner.learn(*blobs(["c"])).rename("a", "z").forget("b")
    assert learner.labels == ("z", "c"), learner.labels
    assert set(predict(learner, far)) <= {"z", "c"}
    assert learner.score(far).values.shape == (200, 2)


def check_saving_and_going_on_is_going_on(make: Factory) -> None:
    """What is read and written again is the same bits; learned on, it answers as had it never been saved."""
    learner = teach(make, ["a", "b"], ["c"])
    reloaded = save_and_load(learner)
    assert_same_state(reloaded.state(), learner.state())
    for name in ("labels", "built_in", "settings", "seed", "updates", "n_features"):
        here, there = getattr(learner, name), getattr(reloaded, name)
        assert here == there, f"{name} was {here}, and {there} is read"
    x, _ = blobs("abcd", seed=2)
    assert_close(reloaded.score(x).values, learner.score(x).values, "scores of what was read", ROUNDING)
    gone_on, read = (each.learn(*blobs(["d"])).forget("b") for each in (learner, reloaded))
    one, two = read.state(), gone_on.state()
    assert one.meta == two.meta, f"{one.meta} differs from {two.meta}"
    assert one.arrays.keys() == two.arrays.keys(), one.arrays.keys() ^ two.arrays.keys()
    assert_close(read.score(x).values, gone_on.score(x).values, "scores once it has learned on", ROUNDING)


def check_runs_are_repeatable(make: Factory) -> None:
    """The same data and seed give the same bits."""
    one = teach(make, ["a", "b"], ["c"])
    np.random.rand(3)  # the global random state is nobody's business
    assert_same_state(one.state(), teach(make, ["a", "b"], ["c"]).state())


def check_training_data_is_only_where_it_is_declared(make: Factory) -> None:
    """No array reachable from the learner holds a training sample; of one that says it keeps some, only `samples.…`."""
    learner = teach(make, ["a", "b"], ["c"])
    learner.score(blobs(["a"], seed=5)[0])  # which may keep what it computes for that
    samples = directions(np.concatenate([blobs(["a", "b"])[0], blobs(["c"])[0]]))
    declared = [array for name, array in learner.state().arrays.items() if name.startswith("samples.")]
    found = False
    for values in reachable_arrays(learner):
        if values.size % samples.shape[1] == 0:
            rows = directions(values.reshape(-1, samples.shape[1]))
            if (rows @ samples.T).max(initial=0) >= 1 - 1e-6:
                found = True
                known = any(np.array_equal(values, array) for array in declared)
                assert known, "a training sample, perhaps scaled, is stored"
    assert found == learner.about.keeps_samples, "the method says that it keeps samples, but there are none"


def check_memory_table_is_exact(make: Factory) -> None:
    """The table's sum is the bytes of the arrays in the file, and the learner keeps none that is not in it."""
    learner = teach(make, ["a", "b"], ["c"])
    state = learner.state()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model_file.write(path, state.arrays, {})
        content = path.read_bytes()
    kept, said = len(content) - 8 - int.from_bytes(content[:8], "little"), sum(state.memory().values())
    assert said == kept, f"the table says {said} bytes, the file holds {kept}"
    assert {name.split(".")[0] for name in state.arrays} <= GROUPS.keys(), f"a name that says nothing: {state.memory()}"
    rows = {name: array.shape[0] for name, array in state.arrays.items() if has_row_per_class(name)}
    assert set(rows.values()) <= {len(learner.labels)}, f"not one row for each class: {rows}"
    own = {one.name for one in fields(learner)}
    known = own.union(*map(vars, type(learner).__mro__))  # its fields, and what is computed from them once
    assert vars(learner).keys() <= known, f"kept beside its fields: {vars(learner).keys() - known}"
    loaded = type(learner).from_state(state)
    for name in own:
        here, there = (next(reachable_arrays(getattr(each, name)), None) is not None for each in (learner, loaded))
        assert here == there, f"the arrays of {name} are not in the file"


def check_single_samples(make: Factory) -> None:
    """A task of one sample, at first or later, is a task."""
    learner = teach(make, ["a"], ["b"], ["c", "d"], n=1)
    assert set(learner.labels) == set("abcd")
    assert np.isfinite(learner.score(blobs(["a"], n=1)[0]).values).all()


def check_a_sample_scores_alike_in_any_company(make: Factory) -> None:
    """Alone, in another order and among others, up to rounding."""
    learner = teach(make, ["a", "b", "c"])
    x, _ = blobs("abc", n=7, seed=4)
    together = learner.score(x)
    alone = [learner.score(one[None]) for one in x]
    assert_close(np.concatenate([one.values for one in alone]), together.values, "scores of samples alone")
    assert_close(learner.score(x[::-1].copy()).values[::-1], together.values, "scores in another order")
    if together.novelty is not None:
        novelty = [one.novelty for one in alone if one.novelty is not None]
        assert_close(np.concatenate(novelty), together.novelty, "novelty of samples alone")


def check_what_is_impossible_changes_nothing(make: Factory) -> None:
    """NaN, a wrong width, nothing at all, unequal lengths, mixed labels: ValueError, and the learner is as it was."""
    model = Model(teach(make, ["a", "b"]))
    learner, before = model.learner, copy_of(model.learner.state())
    x, y = blobs(["c"])
    for impossible in (
        lambda: model.learn(np.where(x.mean() < x, np.nan, x), y),
        lambda: model.learn(np.where(x.mean() < x, np.inf, x), y),
        lambda: model.learn(x[:, :5], y),
        lambda: model.learn(x[:0], y[:0]),
        lambda: model.learn(x, y[:-1]),
        lambda: model.learn(x, [7] * len(x)),
        lambda: model.learn(x, [None] * len(x)),
        lambda: model.rename("a", 3),
        lambda: learner.forget("nobody"),
        lambda: learner.rename("nobody", "c"),
        lambda: learner.rename("a", "b"),
        lambda: learner.answer(x, 1, ["nobody"]),
    ):
        refusal(impossible)
        assert_same_state(before, learner.state())


def check_a_learner_is_a_value(make: Factory) -> None:
    """Whatever is made of it or asked, it is what it was."""
    learner = teach(make, ["a", "b"], ["c"])
    x, y = blobs("ab", seed=3)
    before, scores = copy_of(learner.state()), learner.score(x).values.copy()
    made: list[Learner] = [learner.learn(*blobs("ad")), learner.forget("a"), learner.rename("a", "z")]
    made[0].learn(*blobs("ae"))
    learner.answer(x, 2)
    if isinstance(learner, LeavesOut):
        judged, left_out = learner.judged(x, y)
        assert left_out.values.shape == (len(x), 3), f"left out, {len(x)} samples have {left_out.values.shape} scores"
        assert judged.labels == learner.labels, judged.labels
    if isinstance(learner, Mergeable):
        learner.merge(learner.empty().learn(*blobs("ab", seed=7)))
    assert_same_state(before, learner.state())
    assert np.array_equal(learner.score(x).values, scores), "it answers otherwise than before it was asked"


def check_interruption_changes_nothing(make: Factory) -> None:
    """An exception out of `tell`, at the first epoch or the last, comes through, and leaves the learner as it was."""
    learner = teach(make, ["a", "b"])
    before, epochs = copy_of(learner.state()), list[Progress]()
    undisturbed = learner.learn(*blobs(["c"]), epochs.append)
    for last in {1, len(epochs)} if epochs else ():
        told = itertools.count(1)

        def interrupt(progress: Progress, last: int = last, told: Iterator[int] = told) -> None:
            if next(told) == last:
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            learner.learn(*blobs(["c"]), interrupt)
            raise AssertionError("the interruption was swallowed")
        assert_same_state(before, learner.state())
    assert_same_state(undisturbed.state(), learner.learn(*blobs(["c"])).state())


def check_answers_are_the_best_of_scores(make: Factory) -> None:
    """`answer` gives the k largest scores, best first, of all classes or of candidates, and their softmax."""
    learner = teach(make, ["a", "b"], ["c", "d"])
    x, _ = blobs("abcd", n=6, seed=2)
    values, novelty, temperature = learner.score(x)
    for candidates in (None, ["d", "a", "b"]):
        known = list(range(4)) if candidates is None else learner.rows(candidates).tolist()
        gaps = (values[:, known] - values[:, known].max(axis=1, keepdims=True)).astype(np.float64) / temperature
        odds = np.exp(gaps) / np.exp(gaps).sum(axis=1, keepdims=True)
        for k in (1, 2, 9):
            rows, scores, probabilities, strange = learner.answer(x, k, candidates)
            shape = (len(x), min(k, len(known)))
            assert rows.shape == scores.shape == probabilities.shape == shape, f"{k} best have shape {rows.shape}"
            assert set(rows.flat) <= set(known), "an answer is none of the candidates"
            assert all(len(set(row)) == len(row) for row in rows.tolist()), "an answer names a class twice"
            assert_close(scores, -np.sort(-values[:, known], axis=1)[:, : shape[1]], f"the {k} best")
            assert_close(np.take_along_axis(values, rows, axis=1), scores, "the scores of the best rows")
            assert_close(probabilities, -np.sort(-odds, axis=1)[:, : shape[1]], "the probabilities")
            assert (strange is None) == (novelty is None), "an answer loses the novelty"
            assert strange is None or novelty is None or np.allclose(strange, novelty, rtol=1e-4), "another novelty"


def check_what_is_known_of_classes(make: Factory) -> None:
    """`counts` are of the samples taught, `class_vectors` has a row for every class; both may be None."""
    learner = teach(make, ["a", "b"], ["c", "d"], n=6)
    _compare_known(learner, dict.fromkeys("abcd", 6))
    learner = learner.learn(*blobs(["c"], n=3, seed=1)).forget("a").rename("b", "z")
    _compare_known(learner, {"z": 6, "c": 9, "d": 6})


def _compare_known(learner: Learner, taught: dict[str, int]) -> None:
    counts, vectors = learner.counts(), learner.class_vectors()
    known = None if counts is None else dict(zip(learner.labels, counts.tolist(), strict=True))
    assert known in (None, taught), f"{known}, not {taught}"
    assert vectors is None or (vectors.ndim == 2 and len(vectors) == len(taught)), "not a vector for each class"
    assert vectors is None or len(np.unique(vectors, axis=0)) == len(taught), "two classes have the same vector"


def check_every_class_can_be_forgotten(make: Factory) -> None:
    """One by one, the first first: scores stay finite, and without any class it is saved, read and taught again."""
    learner = teach(make, ["a", "b"], ["c"])
    x, _ = blobs(["d"])
    for label in ("a", "b"):
        learner = learner.forget(label)
        assert np.isfinite(learner.score(x).values).all(), f"{label} forgotten, scores are not finite"
    learner = learner.learn(*blobs(["d"])).forget("c").forget("d")
    assert learner.labels == (), learner.labels
    for each in (learner, save_and_load(learner)):
        assert share_right(each.learn(*blobs("ad")), ["d"]) > 0.5, "what is learned afterwards is not known"


def check_settings_are_checked(make: Factory) -> None:
    """A setting that does not exist, or that is no number where one belongs, is refused by its name."""
    kind = type(make())
    numbers = [field.name for field in fields(kind.settings_type) if field.type in (int, float)]
    for name in ("no_such_setting", *numbers):
        words = refusal(functools.partial(kind.configure, {name: "much"}))
        assert name in words, f"{name} is refused without its name: {words}"
    assert kind.configure() == kind.settings_type(), f"without a change, its settings are {kind.configure()}"


def check_merging_is_having_learned_everything(make: Factory) -> None:
    """If it says that it merges: several make what one would be that had learned all, and taking one away undoes it."""
    first = teach(make, ["a", "b"])
    assert isinstance(first, Mergeable) == first.about.merges, "it says of merging what it does not do"
    if not isinstance(first, Mergeable):
        return
    (x, _), (beyond, y) = blobs("abcd", seed=2), blobs("bcd", 6, seed=8)
    beyond += 2  # so that what is learned of a known class moves its mean
    blank, fresh = first.empty(), make()
    assert blank.labels == first.built_in, f"an empty learner knows {blank.labels}"
    others = [blank.learn(beyond[:12], y[:12]), blank.learn(beyond[12:], y[12:])]
    merged, whole = first.merge(*others), first.learn(beyond[:12], y[:12]).learn(beyond[12:], y[12:])
    assert (merged.labels, merged.updates) == (whole.labels, whole.updates), f"{merged.labels}, not {whole.labels}"
    assert_close(merged.score(x).values, whole.score(x).values, "scores of what was merged", ROUNDING)
    if isinstance(fresh, Mergeable):
        assert_close(
            fresh.merge(merged).score(x).values,
            merged.score(x).values,
            "scores of what was merged into nothing",
            ROUNDING,
        )
    if isinstance(merged, Subtracts):
        left, never = merged.subtract(others[0]), first.learn(beyond[12:], y[12:])
        assert left.labels == never.labels, f"taken away, {left.labels} are left"
        assert_close(left.score(x).values, never.score(x).values, "scores of what is left", ROUNDING)


CHECKS: tuple[Callable[[Factory], None], ...] = tuple(
    check for name, check in globals().items() if name.startswith("check_") and check is not check_learner
)
