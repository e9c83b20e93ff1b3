"""IncrementalClassifier: the scikit-learn estimator people import."""

import copy
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from engram.backbones import Backbone, RecordedBackbone
from engram.backbones.imagenet import read_head
from engram.device import resolve_device
from engram.images import Pictures, extract, holds_pictures
from engram.io import model_file
from engram.learner import Label, Learner, MemoryTable, Progress, State
from engram.methods import METHODS, MissingMethodError, find_method
from engram.methods.imagenet import BesideImageNet
from engram.methods.missing import missing_method
from engram.names import require_name
from engram.settings import plain
from engram.snapshots import Shared, change, read


class Nearest(NamedTuple):
    """The best classes of each sample, best first, their scores and their probabilities; (n, k) each."""

    labels: NDArray[Any]
    scores: NDArray[np.float32]
    probabilities: NDArray[np.float64]


class LeftOut(NamedTuple):
    """What a model would say to samples it learned, had each in turn not been learned, and how sure it would be; (n,).

    `judged` is False where a sample is the only one of its class, which would then be no answer.
    """

    answers: NDArray[Any]
    probabilities: NDArray[np.float64]
    judged: NDArray[np.bool_]

    def misfits(self, y: ArrayLike) -> "list[Misfit]":
        """The samples that would be taken for another class than their label: likely wrong ones, the surest first."""
        wrong = np.flatnonzero((self.answers != np.asarray(y)) & self.judged).tolist()
        wrong.sort(key=lambda i: -self.probabilities[i])
        return [Misfit(i, self.answers[i].item(), float(self.probabilities[i])) for i in wrong]


class Misfit(NamedTuple):
    """A sample whose label looks wrong: its position, what the others say it is, and how sure that is (0 to 1)."""

    position: int
    answer: Label
    probability: float


class IncrementalClassifier(Shared, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns new classes one at a time, from their own data alone.

    `fit` trains the base; `partial_fit` then learns what is new, under class names nobody announced before. X is a
    table of feature vectors or, with a backbone, pictures: paths, PIL images, or one uint8 array (N, H, W, 3).

    Parameters
    ----------
    method : how to learn: "whitened" (one mean per class and one matrix), the paper's "mas", "si", "mas-lof" and
        "si-lof", any other name of `engram methods`, or a `Learner` class of your own.
    config : settings of that method, by name; those left out have the method's defaults.
    backbone : name of a frozen network (see `engram.backbones.names`) or one made by `engram.backbones.create`, which
        turns pictures into features; None takes feature vectors only.
    temperature : of the softmax in `predict_proba`; None takes the method's own.
    random_state : int, RandomState or None.
    device : "auto" (CUDA if there is one), "cpu", "cuda".
    progress : called with an `engram.Progress` after every epoch.

    Attributes
    ----------
    classes_ : labels known, sorted; columns of scores and probabilities, and what is told of classes, follow them.
    learned_order_ : the same labels in the order they were learned, a list.
    counts_ : samples each class was learned from; None where the method does not keep that.
    class_vectors_ : one vector per class that places it among the others; None where the method has none.
    built_in_ : those of the labels that nobody taught, but the backbone's own head knows; see `with_imagenet`.
    can_learn_ : whether the model can learn on; one that version 0.1 saved slim cannot.
    method_ : name of the method, as in the model file.
    about_ : what there is to know about the method, which the model file says, too.
    config_ : every setting of the method.
    n_features_in_ : features per sample.
    feature_names_in_ : their names, where X had some, as a pandas.DataFrame has.
    backbone_identity_ : which network made the features, down to a hash of its weights; None for feature vectors.
    backbone_ : that network itself.
    learner_ : the method itself.
    notes_ : anything JSON can hold that is to travel with the model in its file; `fit` starts with none.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from engram import IncrementalClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = IncrementalClassifier().fit(X[y < 5], y[y < 5])
    >>> clf = clf.partial_fit(X[y == 7], y[y == 7])
    >>> clf.classes_.tolist()
    [0, 1, 2, 3, 4, 7]

    Threads may share a classifier: changes take turns, and every answer is that of one moment.
    """

    learner_: Learner
    _recorded: RecordedBackbone | None

    def __init__(
        self,
        method: str | type[Learner] = "whitened",
        *,
        config: Mapping[str, Any] | None = None,
        backbone: str | Backbone | None = None,
        temperature: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.method = method
        self.config = config
        self.backbone = backbone
        self.temperature = temperature
        self.random_state = random_state
        self.device = device
        self.progress = progress

    @classmethod
    def with_imagenet(cls, backbone: str | Backbone = "efficientnet_lite0:joined", **parameters: Any) -> Self:
        """A classifier that answers ImageNet's 1,000 classes by its backbone's own head, to be taught more beside them.

        A class that is taught under the name of one of them takes its place. `parameters` are those of the constructor.
        """
        clf = cls(BesideImageNet.method, backbone=backbone, **parameters)
        learner, recorded = clf._begin()
        if not isinstance(learner, BesideImageNet) or recorded is None or recorded.name is None:
            raise ValueError("ImageNet's classes come with a backbone by name; see engram.backbones.names")
        head, network = read_head(recorded.name), recorded.network()
        learner.adopt(head.names, head.weight, head.bias, network.dim)
        clf.learner_, clf._recorded, clf.n_features_in_ = learner, recorded, network.dim
        clf.notes_ = {}
        return clf

    # --- learning -------------------------------------------------------------------------------------------------

    def fit(self, X: ArrayLike | Pictures, y: ArrayLike) -> Self:
        """Base training: start over with these classes."""
        self._learn(X, y, start_over=True)
        return self

    def _begin(self) -> tuple[Learner, RecordedBackbone | None]:
        """A learner that knows nothing, and the network it will see with."""
        kind = find_method(self.method)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        learner = kind(kind.configure(self.config), seed=seed, device=self.device)
        return learner, None if self.backbone is None else RecordedBackbone(self.backbone)

    def partial_fit(self, X: ArrayLike | Pictures, y: ArrayLike) -> Self:
        """Learn one task more: classes with new names, or more data of known ones. The first call is `fit`."""
        self._learn(X, y, start_over=False)
        return self

    @change
    def _learn(self, X: ArrayLike | Pictures, y: ArrayLike, start_over: bool) -> None:
        start_over = start_over or not self.__sklearn_is_fitted__()
        _refuse_mixed_labels(y)
        self._given_temperature()
        learner, recorded = self._begin() if start_over else (copy.copy(self.learner_), self._recorded)
        vectors = self._vectors(X, recorded)
        features, labels = validate_data(self, vectors, y, reset=start_over, dtype=np.float32, order="C")
        check_classification_targets(labels)
        _require_names(set(labels.tolist()) - set(learner.labels))
        learner.learn(features, labels, self.progress)
        self.learner_, self._recorded = learner, recorded
        if start_over:
            self.notes_: dict[str, Any] = {}

    def _vectors(self, X: ArrayLike | Pictures, recorded: RecordedBackbone | None) -> Any:
        """Features of pictures; anything else as it is. A picture that cannot be read is an error."""
        if not holds_pictures(X):
            return X
        if recorded is None:
            raise ValueError(
                "X holds pictures, but this classifier takes feature vectors; "
                "make it with IncrementalClassifier(backbone='efficientnet_lite0'), or extract features first"
            )
        pictures: Any = X
        if not (isinstance(X, np.ndarray) and X.dtype == np.uint8):
            pictures = list(pictures)
        return extract(pictures, recorded.network(), device=self.device, strict=True).values

    def require_mergeable(self, other: "IncrementalClassifier") -> None:
        """Refuse a classifier that cannot be merged with this one, in one line that names what is in the way."""
        for clf in (self, other):
            clf._require_fitted()
        names = [clf.backbone_identity_ or "none, but feature vectors" for clf in (self, other)]
        if names[0] != names[1]:
            raise ValueError(f"models with different backbones cannot be merged: {names[0]} and {names[1]}")
        self.learner_.require_mergeable(other.learner_)

    @read
    def merge(self, *others: "IncrementalClassifier") -> Self:
        """A classifier that knows what this one and others know, as if it had learned everything: `merge(a, b, …)`.

        Classes of one name become one. The others are left as they are. Methods whose `about` has `merges` can do it.
        """
        _require_names(self.learned_order_)
        for other in others:
            self.require_mergeable(other)
            _require_names(other.learned_order_)
        merged = copy.copy(self)
        merged.learner_ = type(self.learner_).from_state(self.learner_.state(), self.device)
        merged.learner_.merge(*(other.learner_ for other in others))
        merged.n_features_in_ = merged.learner_.n_features
        merged.notes_ = {}
        return merged

    @read
    def subtract(self, other: "IncrementalClassifier") -> Self:
        """A classifier that knows what this one knew before `other` was merged: `a.merge(b).subtract(b)` is like `a`.

        Classes of which no sample is left are gone. Both are left as they are. Exact for "whitened", "slda" and "ncm",
        up to rounding; calibration stays as it is.
        """
        self.require_mergeable(other)
        rest = copy.copy(self)
        rest.learner_ = copy.copy(self.learner_)
        rest.learner_.subtract(other.learner_)
        rest.notes_ = {}
        return rest

    @read
    def blank(self) -> Learner:
        """A learner to teach elsewhere, on features of this classifier's backbone, for `absorb`."""
        return (self.learner_ if self.__sklearn_is_fitted__() else self._begin()[0]).blank()

    def absorb(self, *taught: Learner) -> Self:
        """Know what `blank` learners were taught elsewhere, as if it had been learned here. All or nothing."""
        self._absorb(taught)
        return self

    @change
    def _absorb(self, taught: Sequence[Learner]) -> None:
        fitted = self.__sklearn_is_fitted__()
        learner, recorded = (copy.copy(self.learner_), self._recorded) if fitted else self._begin()
        for one in taught:
            _require_names(set(one.labels) - set(learner.labels))
        learner.merge(*taught)
        self.learner_, self._recorded = learner, recorded
        if not fitted:
            self.notes_ = {}
        self.n_features_in_ = learner.n_features

    def calibrate(self, X: ArrayLike | Pictures, y: ArrayLike) -> Self:
        """Measure, on some of the samples that were absorbed, how likely answers are and what is unknown."""
        self._calibrate(X, y)
        return self

    @change
    def _calibrate(self, X: ArrayLike | Pictures, y: ArrayLike) -> None:
        learner = copy.copy(self.learner_)
        learner.calibrate(self._features(X), np.asarray(y))
        self.learner_ = learner

    # --- predicting -----------------------------------------------------------------------------------------------

    @read
    def predict(self, X: ArrayLike | Pictures, *, among: Iterable[Label] | None = None) -> NDArray[Any]:
        """The best class of each sample; with `among`, the best of those."""
        features = self._features(X)
        return self.learner_.predict(features, self._chosen(among))

    @read
    def nearest(self, X: ArrayLike | Pictures, k: int = 3, *, among: Iterable[Label] | None = None) -> Nearest:
        """The `k` best classes of each sample, their scores, and their probabilities as in `predict_proba`.

        With `among`, the best of those classes, whose probabilities sum to 1.
        """
        features, chosen, temperature = self._features(X), self._chosen(among), self._temperature()
        if chosen is None:
            scores, rows = self.learner_.nearest(features, k)
            total = self.learner_.log_sum(features, temperature)
        else:
            scores, rows = self.learner_.nearest(features, len(chosen), chosen)
            total = np.logaddexp.reduce(scores.astype(np.float64) / temperature, axis=1)
            scores, rows = scores[:, :k], rows[:, :k]
        logs = scores.astype(np.float64) / temperature - total[:, None]
        labels = np.asarray(self.learner_.labels)[rows]
        return Nearest(labels, scores, np.exp(np.minimum(logs, 0)))  # above 0 by rounding alone

    @read
    def decision_function(self, X: ArrayLike | Pictures) -> NDArray[np.float32]:
        """The method's score of each class, (n, classes); with two classes, as scikit-learn has it, (n,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @read
    def predict_proba(self, X: ArrayLike | Pictures, *, among: Iterable[Label] | None = None) -> NDArray[np.float64]:
        """Softmax over scores / `temperature`: calibrated for whitened prototypes, else an order of preference.

        With `among`, over the scores of those classes, which are the columns, in that order.
        """
        scores, chosen = self._scores(X), self._chosen(among)
        if chosen is not None:
            scores = scores[:, [self.classes_.tolist().index(label) for label in chosen]]
        logits = scores.astype(np.float64) / self._temperature()
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        proba: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
        return proba

    @read
    def familiarity(self, X: ArrayLike | Pictures) -> NDArray[np.float32]:
        """How much each sample looks like any known class; compare with `unknown_below`."""
        features = self._features(X)
        return self.learner_.familiarity(features)

    def unknown_below(self, share: float = 0.05) -> float | None:
        """The familiarity that about this share of samples of known classes does not reach: what lies below is unknown.

        None for a method that has no measure of that.
        """
        self._require_fitted()
        return self.learner_.unknown_below(share)

    @read
    def leave_one_out(self, X: ArrayLike | Pictures, y: ArrayLike) -> LeftOut | None:
        """What the model would say to samples it has just learned had it not; None for a method that cannot tell."""
        features, labels = self._features(X), np.asarray(y)
        found, counts = self.learner_.leave_one_out(features, labels), self.counts_
        if found is None or counts is None:
            return None
        alone = np.isin(labels, self.classes_[counts == 1])
        return LeftOut(np.asarray(self.learner_.labels)[found.rows], found.probabilities, ~alone)

    def misfits(self, X: ArrayLike | Pictures, y: ArrayLike) -> list[Misfit] | None:
        """Samples just learned whose label is likely wrong, the surest first; None for a method that cannot tell."""
        found = self.leave_one_out(X, y)
        return None if found is None else found.misfits(y)

    def _chosen(self, among: Iterable[Label] | None) -> list[Label] | None:
        """The classes to choose among, each once; ValueError names those that are not known."""
        if among is None:
            return None
        chosen = list(dict.fromkeys(np.asarray(list(among)).tolist()))
        known = set(self.learner_.labels)
        if strangers := [label for label in chosen if label not in known]:
            raise ValueError(f"among holds classes that are not known: {', '.join(map(repr, strangers))}")
        if not chosen:
            raise ValueError("among holds no class")
        return chosen

    def _temperature(self) -> float:
        given = self._given_temperature()
        return self.learner_.temperature if given is None else given

    def _given_temperature(self) -> float | None:
        """As Python's number; ValueError if it is none to divide by."""
        given: float | None = plain(self.temperature)
        if given is not None and (type(given) not in (int, float) or not 0 < given < math.inf):
            raise ValueError(f"temperature must be a number above 0, or None, not {self.temperature!r}")
        return given

    def _scores(self, X: ArrayLike | Pictures) -> NDArray[np.float32]:
        features = self._features(X)
        return self.learner_.scores(features)[:, _sorted_rows(self.learner_.labels)]

    def _features(self, X: ArrayLike | Pictures) -> NDArray[np.float32]:
        self._require_fitted()
        if not self.learner_.labels:
            raise ValueError("every class has been forgotten; teach one with partial_fit")
        checked: NDArray[np.float32] = validate_data(
            self, self._vectors(X, self._recorded), reset=False, dtype=np.float32, order="C"
        )
        return checked

    # --- what is known ---------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels known, sorted; columns of `predict_proba` follow them."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("classes_ exists once the classifier is fitted")
        return np.asarray(sorted(self.learner_.labels))

    @property
    def learned_order_(self) -> list[Label]:
        """The labels known, in the order they were learned."""
        self._require_fitted()
        return self.learner_.labels

    @property
    def built_in_(self) -> list[Label]:
        """The labels that nobody taught: they came with the backbone."""
        self._require_fitted()
        return self.learner_.built_in

    @property
    def counts_(self) -> NDArray[np.int64] | None:
        """How many samples each class was learned from."""
        self._require_fitted()
        learner = copy.copy(self.learner_)
        counts = learner.counts()
        return None if counts is None else np.asarray(counts, dtype=np.int64)[_sorted_rows(learner.labels)]

    @property
    def class_vectors_(self) -> NDArray[np.float32] | None:
        """One vector per class that places it among the others."""
        self._require_fitted()
        learner = copy.copy(self.learner_)
        vectors = learner.class_vectors()
        return None if vectors is None else vectors[_sorted_rows(learner.labels)]

    @property
    def stray_(self) -> dict[Label, float] | None:
        """How far a network that goes on training has come away from each class; see `Learner.stray`."""
        self._require_fitted()
        learner = copy.copy(self.learner_)
        found = learner.stray()
        return None if found is None else dict(zip(learner.labels, found, strict=True))

    @property
    def can_learn_(self) -> bool:
        """Whether the model can learn on."""
        self._require_fitted()
        return self.learner_.can_learn

    @property
    def method_(self) -> str:
        """Name of the method."""
        self._require_fitted()
        return self.learner_.method

    @property
    def about_(self) -> dict[str, Any]:
        """What there is to know about the method: its title and paper, what it stores, what it can tell."""
        self._require_fitted()
        return self.learner_.described()

    @property
    def config_(self) -> dict[str, Any]:
        """Every setting of the method."""
        self._require_fitted()
        return asdict(self.learner_.config)

    @property
    def backbone_(self) -> Backbone:
        """The frozen network the model was taught with, made when it is first asked for."""
        self._require_fitted()
        if self._recorded is None:
            raise AttributeError("this model was taught with feature vectors; it has no backbone")
        return self._recorded.network()

    @property
    def backbone_identity_(self) -> str | None:
        """Name of that network and hash of its weights; None for a model of feature vectors."""
        self._require_fitted()
        return None if self._recorded is None else self._recorded.identity

    def forget(self, label: Label) -> Self:
        """Remove a class: its name and what is kept of it alone. ValueError if it is not known."""
        self._forget(label)
        return self

    @change
    def _forget(self, label: Label) -> None:
        self._require_fitted()
        learner = copy.copy(self.learner_)
        learner.forget(label)
        self.learner_ = learner

    def rename(self, old: Label, new: Label) -> Self:
        """Give a class another name."""
        self._rename(old, new)
        return self

    @change
    def _rename(self, old: Label, new: Label) -> None:
        self._require_fitted()
        _require_names([new])
        learner = copy.copy(self.learner_)
        learner.rename(old, new)
        self.learner_ = learner

    @read
    def memory(self) -> MemoryTable:
        """Every tensor that is kept: name -> shape, dtype, bytes and what it is kept for."""
        self._require_fitted()
        return self.learner_.memory()

    # --- the model file --------------------------------------------------------------------------------------------

    @read
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file."""
        self._require_fitted()
        if METHODS.get(self.learner_.method) is not type(self.learner_):
            raise ValueError(
                f"{type(self.learner_).__name__} is not what `engram methods` has as {self.learner_.method!r}: "
                "a file of it could not be opened"
            )
        state = self.learner_.state()
        header: dict[str, Any] = {
            "method": self.learner_.method,
            "learner": state.meta,
            "about": self.learner_.described(),
            "backbone": None if self._recorded is None else self._recorded.as_json(),
            "estimator": {"temperature": self._given_temperature()},
            "notes": self.notes_,
        }
        if hasattr(self, "feature_names_in_"):
            header["feature_names"] = self.feature_names_in_.tolist()
        model_file.write(path, state.tensors, header)

    def export(self, path: str | os.PathLike[str], *, unknown_below: float | None = None) -> dict[str, Any]:
        """Write the model, backbone included, as one graph; PATH ends in .onnx.

        Returns what the graph takes and gives. `unknown_below` is the familiarity below which it calls a picture not
        known; without it, the method's own. The model has to be on the CPU: load it with device="cpu".
        """
        from engram.io.export import export

        if self.backbone_identity_ is None:
            raise ValueError("only a model that was taught pictures can be exported")
        below = self.unknown_below() if unknown_below is None else unknown_below
        settings: Any = {"temperature": self._temperature(), "unknown_below": below}
        return export(self.backbone_.cpu(), self.learner_, Path(path), **settings)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, backbone: str | Backbone | None = None, device: str = "auto"
    ) -> Self:
        """Read a model file; going on from it equals never having saved.

        A model of pictures makes its backbone by the recorded name, when a picture comes; give `backbone` where that
        is not enough, as for a weights file of one's own. Another network than the recorded one is refused. A model
        whose method is not here can be looked at; what only the method can do says that it is missing.
        """
        resolve_device(device)  # a device that is not there is no fault of the file
        tensors, header = model_file.read(path)
        try:
            for i in range(len(header.get("examples", ()))):
                del tensors[f"examples.{i}"]  # features of pictures to check with, which files of before may hold
            learner = _learner_of(header, State(tensors, header["learner"]), device)
            clf = cls(
                learner.method,
                config=asdict(learner.config),
                random_state=learner.seed,
                device=device,
                **header["estimator"],
            )
            clf._given_temperature()
            if "feature_names" in header:
                clf.feature_names_in_ = _as_feature_names(header["feature_names"], learner.n_features)
            clf.notes_ = dict(header.get("notes", {}))  # files of before there were notes have none
            described = header["backbone"]
            blind = None if described is None else RecordedBackbone.from_json(described, None)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            reason = model_file.one_line(error)
            raise model_file.ModelFileError(f"{path} is not a model this version can use: {reason}") from error
        if backbone is not None and described is None:
            raise ValueError("the model was taught with feature vectors; load it without backbone=")
        clf.learner_ = learner
        clf._recorded = RecordedBackbone.from_json(described, backbone) if backbone is not None else blind
        clf.backbone = None if clf._recorded is None else clf._recorded.backbone
        clf.n_features_in_ = learner.n_features
        return clf

    # --- scikit-learn's conventions --------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this IncrementalClassifier knows no class yet; call fit or partial_fit first")


def _learner_of(header: Mapping[str, Any], state: State, device: str) -> Learner:
    try:
        return find_method(header["method"]).from_state(state, device)
    except MissingMethodError as error:  # of the method, or of one that it is made with
        if not isinstance(header["method"], str):
            raise
        return missing_method(header["method"], header.get("about"), str(error)).from_state(state, device)


def _as_feature_names(names: Any, n: int | None) -> NDArray[Any]:
    if not isinstance(names, list) or len(names) != n or not all(isinstance(name, str) for name in names):
        raise ValueError(f"the names of its features are not {n} texts")
    return np.asarray(names, dtype=object)


def _sorted_rows(labels: Sequence[Label]) -> NDArray[np.int64]:
    """Where each of the sorted labels is among those of a learner, which has them in the order they were learned."""
    return np.asarray(sorted(range(len(labels)), key=labels.__getitem__), dtype=np.int64)


def _require_names(labels: Iterable[Any]) -> None:
    """ValueError for a text that no class can be called; numbers can always be shown and asked for."""
    for label in labels:
        if isinstance(label, str):
            require_name(label)


def _refuse_mixed_labels(y: ArrayLike) -> None:
    """Before numpy makes strings of all of them, as it would of ["cat", 3]."""
    if isinstance(y, list | tuple) or (isinstance(y, np.ndarray) and y.dtype == object):
        labels: Iterable[Any] = y
        if len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError("labels mix str and other types; give them all as str, or all as int")
