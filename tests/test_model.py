"""The model: pieces and order, there and back, what is checked on the way in, what leave-one-out says, and its file."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.encoders.recorded import RecordedEncoder
from engram.errors import DamagedModelError, ModelFileError
from engram.files import model_file
from engram.history import Notes
from engram.learners.absent import Absent
from engram.learners.registry import MissingMethodError
from engram.learners.trying import assert_same_state
from engram.model import LARGEST_FEATURE, Model

SIZES = {"ant": 5, "bee": 1, "cat": 9, "dog": 4, "elk": 2}


def samples(sizes: dict[str, int], seed: int = 0) -> tuple[np.ndarray, list[str]]:
    y = [name for name, n in sizes.items() for _ in range(n)]
    centres = {name: 3 * np.random.default_rng(list(name.encode())).normal(size=5) for name in sizes}
    return np.array([centres[name] for name in y]) + np.random.default_rng(seed).normal(size=(len(y), 5)), y


X, Y = samples(SIZES)
QUERIES = samples(SIZES, seed=3)[0]
NAMES = np.array(Y)


def exact(seed: int = 0) -> Model:
    return Model.new("whitened", {"kept_bits": 64}, seed=seed)


def taught(rows, model: Model | None = None, x: np.ndarray = X) -> Model:
    after, _ = (model or exact()).learn(x[rows], NAMES[rows].tolist(), judge=False)
    return after


def assert_alike(one: Model, two: Model, atol: float = 1e-6) -> None:
    """The same classes with the same counts, and the same answers."""
    assert sorted(one.labels) == sorted(two.labels)
    assert one.pictures() == {name: two.pictures()[name] for name in one.labels}
    mine, theirs = (model.learner.score(model.checked(QUERIES)).values for model in (one, two))
    np.testing.assert_allclose(mine, theirs[:, two.learner.rows(one.labels)], atol=atol)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_pieces_orders_merges_and_what_is_taken_back_are_as_had_it_always_been_so(data):
    """Pieces are taught here or elsewhere, in any order and with other units; some are taken away, or forgotten."""
    x = X.copy()
    x[NAMES == "cat"] *= data.draw(st.sampled_from([1, 1000]), label="unit")
    piece_of = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(Y), max_size=len(Y)), label="piece"))
    pieces = [np.flatnonzero(piece_of == piece) for piece in data.draw(st.permutations(sorted(set(piece_of.tolist()))))]
    models = [taught(pieces[0], x=x)]
    for rows in pieces[1:]:
        if data.draw(st.booleans(), label="elsewhere"):
            models.append(taught(rows, exact(seed=len(models)), x))
        else:
            models[-1] = taught(rows, models[-1], x)
    while len(models) > 1:
        at = data.draw(st.integers(0, len(models) - 2))
        first, *others = models[at : at + data.draw(st.integers(2, 3))]
        models[at : at + 1 + len(others)] = [first.merge(*others)]
    assert_alike(models[0], taught(np.arange(len(Y)), x=x))
    back = data.draw(st.lists(st.sampled_from(range(len(pieces))), unique=True, max_size=len(pieces) - 1))
    gone = np.isin(np.arange(len(Y)), np.concatenate([pieces[i] for i in back])) if back else np.zeros(len(Y), bool)
    left = models[0]
    for i in back:
        left = left.subtract(taught(pieces[i], x=x))
    assert_alike(left, taught(np.flatnonzero(~gone), x=x), 1e-5)


def test_going_on_after_saving_is_going_on_and_renaming_twice_is_nothing(tmp_path):
    model = taught(NAMES < "d")
    model.save(tmp_path / "m")
    read = Model.load(tmp_path / "m")
    for each in (read, read.rename("ant", "z").rename("z", "ant")):
        assert_alike(taught(NAMES >= "d", each).forget("bee"), taught(NAMES >= "d", model).forget("bee"))


# --- what is checked on the way in ------------------------------------------------------------------------------------


def test_tables_of_any_kind_and_layout_mean_the_same():
    x = X.astype(np.float32)
    expected = taught(slice(None), x=x).learner.state()
    for form in (x.astype(np.float64), np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], x.tolist()):
        model, _ = exact().learn(form, np.array(Y), judge=False)
        assert_same_state(model.learner.state(), expected)
        assert np.array_equal(model.answer(form).scores, model.answer(x).scores)


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (X[:, :4], "X has 4 features per sample, but the model was trained on 5"),
        (X[:0], "at least one row"),
        (X[0], "has the shape"),
        (X[None], "has the shape"),
        ([["a"] * 5], "must be a table of numbers"),
        ([[1, 2, 3, 4, 5], [1]], "must be a table of numbers"),
        (np.where(X.mean() < X, np.nan, X), "X holds nan"),
        (np.where(X.mean() < X, np.inf, X), "X holds inf"),
        (np.where(X.mean() < X, -np.inf, X), "X holds inf"),
        (X * 1e13, "scale the features"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_that_is_none_is_refused_in_one_line(x, said: str):
    model = taught(slice(None))
    for asked in (lambda: model.answer(x), lambda: model.learn(x, ["a"] * len(x)), lambda: model.judged(x, Y)):
        with pytest.raises(ValueError, match=said) as error:
            asked()
        assert "\n" not in str(error.value)


def test_the_largest_feature_is_learned():
    x = np.sign(X) * LARGEST_FEATURE
    model, _ = Model.new().learn(x, Y)
    assert np.isfinite(model.answer(x).probabilities).all()


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (Y[:-1], "there are 21 samples and 20 labels"),
        ([None] * 21, "a label must be a str or an int, but None is a NoneType"),
        ([1.5] * 21, "1.5 is a float"),
        ([True] * 21, "True is a bool"),
        ([7] * 21, "labels mix str and int"),
        (["a", 7, *Y[2:]], "labels mix str and int"),
        (["unknown"] * 21, "cannot be called 'unknown'"),
        (["a\nb"] * 21, "printable"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_labels_that_are_none_are_refused(y, said: str):
    model = taught(slice(None))
    with pytest.raises(ValueError, match=said):
        model.learn(X, y)
    if len(y) == 21 and y[0] is not None and "mix" not in said:
        with pytest.raises(ValueError, match=said):
            model.rename("ant", y[0])


def test_labels_may_be_numbers_of_any_kind_and_stay_what_they_are(tmp_path):
    for given_ in (np.array([3, 3, 1]), [3.0, 3.0, np.int8(1)]):
        model, _ = Model.new("ncm").learn(X[:3], given_)
        model.save(tmp_path / "m")
        assert Model.load(tmp_path / "m").labels == [1, 3]
    assert model.as_label("7") == 7
    with pytest.raises(ValueError, match="are numbers, and 'seven' is none"):
        model.as_label("seven")
    with pytest.raises(ValueError, match="mix str and int"):
        model.rename(1, "one")
    assert model.rename(1, 2).labels == [2, 3]
    assert taught(slice(None)).as_label("7") == "7"


def test_candidates_are_known_classes_each_once():
    model = taught(slice(None))
    found = model.answer(QUERIES, 9, ["dog", "ant", "dog"])
    assert found.rows.shape == (21, 2)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-6)
    with pytest.raises(ValueError, match="'fox', 'gnu'"):
        model.answer(QUERIES, 1, ["ant", "fox", "gnu"])
    with pytest.raises(ValueError, match="holds no class"):
        model.answer(QUERIES, 1, [])
    with pytest.raises(ValueError, match="every class has been forgotten"):
        Model.new().answer(QUERIES)


def test_a_class_is_found_by_its_name_as_text():
    model, _ = Model.new("ncm").learn(X[:2], [3, 12])
    assert model.label("12") == 12
    assert model.names == ["3", "12"]
    with pytest.raises(ValueError, match="knows no class '4'; it knows 3, 12"):
        model.label("4")
    many, _ = Model.new("ncm").learn(X[:12], list(range(12)))
    with pytest.raises(ValueError, match="and 2 more"):
        many.label("x")


def test_an_own_temperature_is_used_in_place_of_the_methods(tmp_path):
    model = taught(slice(None))
    cold = replace(model, temperature=1e-9)
    cold.save(tmp_path / "m")
    assert Model.load(tmp_path / "m").answer(QUERIES).probabilities.min() > 0.999
    assert model.answer(QUERIES).probabilities.min() < 0.999


# --- what leave-one-out says ------------------------------------------------------------------------------------------


def test_what_was_just_learned_is_judged_and_wrong_labels_are_suspects_the_surest_first():
    x, y = samples({"ant": 20, "bee": 20, "cat": 20, "dog": 1})
    wrong = list(y)
    wrong[3], wrong[25] = "cat", "ant"
    model, said = Model.new().learn(x, wrong)
    assert said is not None
    suspects = said.suspects(wrong)
    assert {(one.position, one.answer) for one in suspects} == {(3, "ant"), (25, "bee")}
    assert [one.probability for one in suspects] == sorted((one.probability for one in suspects), reverse=True)
    assert all(1 / 4 < one.probability <= 1 for one in suspects)
    assert said.judged.tolist() == [True] * 60 + [False]
    assert model.unknown_above() == model.learner.unknown_above(model.notes.refuse) is not None
    assert model.unknown_above(0.5) < model.unknown_above(0.05)


def test_whoever_does_not_ask_is_not_told():
    model, said = Model.new().learn(X, Y, judge=False)
    assert said is None
    assert model.unknown_above() == Model.new().learn(X, Y)[0].unknown_above() is not None  # it was calibrated, though
    assert (model.leaves_out, model.tells_unknown) == (True, True)
    assert model.judged(X, Y)[1] is not None
    assert (Model.new("ncm").leaves_out, Model.new("ncm").tells_unknown) == (True, False)


# --- merged, taken away -----------------------------------------------------------------------------------------------


def test_only_models_of_one_encoder_and_kind_of_label_become_one():
    one, other = taught(slice(None)), replace(taught(slice(None)), encoder=RecordedEncoder("lite0@1234", "lite0"))
    with pytest.raises(ValueError, match="none, but feature vectors and lite0@1234"):
        one.merge(other)
    with pytest.raises(ValueError, match="none, but feature vectors and lite0@1234"):
        one.subtract(other)
    assert other.merge(other).encoder == other.encoder
    numbers, _ = exact().learn(X, range(len(X)), judge=False)
    with pytest.raises(ValueError, match="mix str and int"):
        one.merge(numbers)
    nearest, _ = Model.new("1nn").learn(X, Y)
    with pytest.raises(ValueError, match="of the method 1nn nothing can be taken away"):
        nearest.subtract(nearest)
    with pytest.raises(ValueError, match=r"of the method mas cannot be merged: .* no sum over samples"):
        Model(Absent.of("mas", one.learner.state(), None, "")).merge(one)


def test_what_was_taught_elsewhere_is_absorbed_and_notes_stay():
    notes = Notes(version=7)
    model = replace(taught(NAMES == "ant"), notes=notes)
    parts = [model.empty().learn(X[name == NAMES].astype(np.float32), [name] * SIZES[name]) for name in ("bee", "cat")]
    whole = model.absorb(*parts)
    assert whole.notes is notes
    assert_alike(whole, taught(NAMES < "d"))


# --- the file ---------------------------------------------------------------------------------------------------------


def test_all_of_it_is_in_its_file(tmp_path):
    model = replace(
        taught(slice(None)),
        encoder=RecordedEncoder("lite0@1234", "lite0"),
        notes=Notes(version=3),
        temperature=0.5,
        feature_names=tuple("vwxyz"),
    )
    model.save(tmp_path / "m")
    read = Model.load(tmp_path / "m")
    assert_same_state(read.learner.state(), model.learner.state())
    for name in ("method", "encoder", "notes", "temperature", "feature_names", "labels"):
        assert getattr(read, name) == getattr(model, name), name
    header = model_file.read(tmp_path / "m")[1]
    assert header["about"]["title"] == "Whitened prototypes"


def rewrite(path, change) -> None:
    """The same file with another header and a right checksum."""
    arrays, header = model_file.read(path)
    del header["tensors"]
    change(header)
    model_file.write(path, arrays, header)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("method"),
        lambda header: header.update(method=["ncm"]),
        lambda header: header.pop("learner"),
        lambda header: header.update(learner=[]),
        lambda header: header["learner"].update(n_features=4),
        lambda header: header["learner"].update(config={"kept_bits": 7}),
        lambda header: header["learner"].update(config=3),
        lambda header: header.pop("estimator"),
        lambda header: header.update(estimator={"temperature": 0}),
        lambda header: header.update(estimator={"temperature": "hot"}),
        lambda header: header.update(feature_names=["a"]),
        lambda header: header.update(feature_names=[1, 2, 3, 4, 5]),
        lambda header: header.update(feature_names="vwxyz"),
        lambda header: header.pop("backbone"),
        lambda header: header.update(backbone={"name": "lite0"}),
        lambda header: header.update(backbone={"name": 3, "identity": "x"}),
        lambda header: header.update(backbone={"name": "lite0", "identity": ""}),
        lambda header: header.update(method="theirs", about={"title": "T"}),
        lambda header: header.update(method="theirs", about=3),
        lambda header: (header.update(method="theirs"), header["learner"].update(labels=["a"])),
        lambda header: header.update(notes=7),
        lambda header: header.update(notes=[["version", 1]]),
        lambda header: header.update(notes={"version": "three"}),
    ],
)
def test_a_signed_file_that_says_what_no_model_says_is_refused_in_one_line(change, tmp_path):
    taught(slice(None)).save(tmp_path / "m")
    rewrite(tmp_path / "m", change)
    with pytest.raises(ModelFileError) as error:
        Model.load(tmp_path / "m")
    assert str(error.value).startswith(str(tmp_path / "m"))
    assert "\n" not in str(error.value)


def test_notes_that_are_none_are_damage(tmp_path):
    taught(slice(None)).save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda header: header.update(notes={"keep": -1}))
    with pytest.raises(DamagedModelError, match="its notes"):
        Model.load(tmp_path / "m")
    rewrite(tmp_path / "m", lambda header: header.pop("notes"))
    assert Model.load(tmp_path / "m").notes == Notes()


def test_a_model_whose_method_is_missing_is_looked_at_and_written_as_it_was(tmp_path):
    model = taught(slice(None))
    model.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda header: header.update(method="theirs"))
    read = Model.load(tmp_path / "m")
    assert (read.method, read.labels, read.pictures()) == ("theirs", model.labels, model.pictures())
    assert (read.leaves_out, read.tells_unknown, read.unknown_above(0.1)) == (True, True, None)
    with pytest.raises(MissingMethodError, match="no method is called 'theirs'"):
        read.answer(QUERIES)
    with pytest.raises(MissingMethodError, match="no method is called 'theirs'"):
        read.learn(X, Y)
    before = model_file.read(tmp_path / "m")[1]
    read.save(tmp_path / "again")
    assert model_file.read(tmp_path / "again")[1] == before


def test_what_only_earlier_versions_kept_is_left_out(tmp_path):
    model = taught(slice(None))
    state = model.learner.state()
    model.save(tmp_path / "m")
    _, header = model_file.read(tmp_path / "m")
    del header["tensors"]
    more = {"examples.0": np.zeros((2, 5), np.float16), "lessons.0.means": np.zeros((2, 5))}
    model_file.write(tmp_path / "m", state.arrays | more, header | {"examples": ["ant"]})
    assert_same_state(Model.load(tmp_path / "m").learner.state(), state)


def test_an_encoder_is_made_by_name_or_given_and_is_the_one_recorded():
    recorded = RecordedEncoder("lite0@1234", "lite0")

    class Lite0:
        class identity:  # noqa: N801
            text, name = "lite0@1234", "lite0"

    class Other:
        class identity:  # noqa: N801
            text, name = "lite0@9999", "lite0"

    assert isinstance(RecordedEncoder.of(Lite0()).open(), Lite0)
    recorded.require(Lite0())
    assert RecordedEncoder.of(Lite0()) == recorded
    with pytest.raises(ValueError, match="lite0@1234, and this is lite0@9999"):
        recorded.require(Other())
    with pytest.raises(ValueError, match="no name makes again"):
        RecordedEncoder("mine@1234").open()
    assert RecordedEncoder.from_json(recorded.as_json()) == recorded
