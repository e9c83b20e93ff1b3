"""IncrementalClassifier: a `Model` with scikit-learn's manners. It takes the extra `sklearn`."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data
except ImportError as error:
    raise ImportError("IncrementalClassifier takes one more package: pip install 'engram-learn[sklearn]'") from error

from engram.encoders.base import Encoder
from engram.encoders.recorded import RecordedEncoder
from engram.images.stream import Sources, encode_all, holds_pictures
from engram.learners.base import Label, Learner, Progress, Scores, quiet
from engram.model import DEFAULT_METHOD, Judgement, Model, Suspect, require_temperature
from engram.settings import plain


class Nearest(NamedTuple):
    """The best classes of each sample, best first, their scores and their probabilities; (n, k) each."""

    labels: NDArray[Any]
    scores: NDArray[np.float32]
    probabilities: NDArray[np.float64]


class _Changing:
    """Has a lock for its changes, in no copy and no pickle of it, and where scikit-learn wants only parameters not."""

    __slots__ = ("_turn",)
    _turn: AbstractContextManager[object]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._turn = threading.RLock()
        return made

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))


class IncrementalClassifier(_Changing, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns new classes one at a time, from their own data alone.

    `fit` trains the base; `partial_fit` then learns what is new, under class names nobody announced before. X is a
    table of feature vectors or, with a backbone, pictures: paths, PIL images, or one uint8 array (N, H, W, 3).

    Parameters
    ----------
    method : how to learn: "whitened" (one mean per class and one matrix), the paper's "mas", "si", "mas-lof" and
        "si-lof", or any other name of `engram methods`.
    config : settings of that method, by name; those left out have the method's defaults.
    backbone : name of a frozen encoder (see `engram.encoders.names`) or one made by `engram.encoders.create`, which
        turns pictures into features; None takes feature vectors only.
    temperature : of the softmax in `predict_proba`; None takes the method's own.
    random_state : int, RandomState or None.
    device : where the encoder computes: "auto", "cpu", "cuda", "directml", "coreml".
    progress : called with an `engram.Progress` after every epoch.

    Attributes
    ----------
    model_ : the `engram.Model` itself.
    classes_ : labels known, sorted; columns of scores and probabilities, and what is told of classes, follow them.
    learned_order_ : the same labels in the order they were learned, a list.
    counts_ : samples each class was learned from; None where the method does not keep that.
    n_features_in_ : features per sample.
    feature_names_in_ : their names, where X had some, as a pandas.DataFrame has.

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

    model_: Model

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
        *,
        config: Mapping[str, Any] | None = None,
        backbone: str | Encoder | None = None,
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
    def with_imagenet(cls, backbone: str = "efficientnet_lite0:joined", **parameters: Any) -> Self:
        """A classifier that answers ImageNet's 1,000 classes by its encoder's own head, to be taught more beside them.

        A class that is taught under the name of one of them takes its place. `parameters` are those of the constructor.
        """
        from engram.store.new import imagenet_model

        if not isinstance(backbone, str):
            raise ValueError(f"ImageNet's classes come with a backbone by name, not with {backbone!r}")
        clf = cls("imagenet", backbone=backbone, **parameters)
        return clf._with(imagenet_model(backbone, clf.device, clf._seed()))

    # --- learning -------------------------------------------------------------------------------------------------

    def fit(self, X: ArrayLike | Sources, y: ArrayLike) -> Self:
        """Base training: start over with these classes."""
        return self._learn(X, y, start_over=True)

    def partial_fit(self, X: ArrayLike | Sources, y: ArrayLike) -> Self:
        """Learn one task more: classes with new names, or more data of known ones. The first call is `fit`."""
        return self._learn(X, y, start_over=False)

    def _learn(self, X: ArrayLike | Sources, y: ArrayLike, start_over: bool) -> Self:
        with self._turn:
            start_over = start_over or not self.__sklearn_is_fitted__()
            _refuse_mixed_labels(y)
            model = self._begin() if start_over else self.model_
            vectors = self._vectors(X, model)
            features, labels = validate_data(self, vectors, y, reset=start_over, dtype=np.float32, order="C")
            check_classification_targets(labels)
            model, _ = model.learn(features, labels.tolist(), self.progress or quiet, judge=False)
            names = getattr(self, "feature_names_in_", None)
            return self._with(replace(model, feature_names=None if names is None else tuple(names)))

    def _begin(self) -> Model:
        """A model that knows nothing."""
        require_temperature(plain(self.temperature))
        encoder = None
        if self.backbone is not None:
            from engram.encoders.registry import create

            made = create(self.backbone, self.device) if isinstance(self.backbone, str) else self.backbone
            encoder = RecordedEncoder.of(made)
        return Model.new(self.method, self.config, encoder=encoder, seed=self._seed())

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _with(self, model: Model) -> Self:
        """This classifier with another model: one assignment, so that whoever reads sees one of both."""
        self.model_ = model
        self.n_features_in_ = model.learner.n_features
        return self

    def _vectors(self, X: ArrayLike | Sources, model: Model) -> Any:
        """Features of pictures; anything else as it is. A picture that cannot be read is an error."""
        if not holds_pictures(X):
            return X
        if model.encoder is None:
            raise ValueError(
                "X holds pictures, but this classifier takes feature vectors; "
                "make it with IncrementalClassifier(backbone='efficientnet_lite0'), or extract features first"
            )
        pictures: Any = X if isinstance(X, np.ndarray) and X.dtype == np.uint8 else list(X)  # type: ignore[arg-type]
        return encode_all(pictures, model.open_encoder(self.device), strict=True).features

    def merge(self, *others: "IncrementalClassifier") -> Self:
        """A classifier that knows what this one and others know, as if it had learned everything: `merge(a, b, …)`.

        Classes of one name become one. The others are left as they are. Methods whose `about` has `merges` can do it.
        """
        for other in others:
            other._require_fitted()
        return self._like(self._fitted().merge(*(other.model_ for other in others)))

    def subtract(self, other: "IncrementalClassifier") -> Self:
        """A classifier that knows what this one knew before `other` was merged: `a.merge(b).subtract(b)` is like `a`.

        Classes of which no sample is left are gone. Both are left as they are. Exact for "whitened", "slda" and "ncm",
        up to rounding; calibration stays as it is.
        """
        return self._like(self._fitted().subtract(other._fitted()))

    def _like(self, model: Model) -> Self:
        made = type(self)(**self.get_params(deep=False))
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_
        return made._with(model)

    def forget(self, label: Label) -> Self:
        """Remove a class: its name and what is kept of it alone. ValueError if it is not known."""
        with self._turn:
            return self._with(self._fitted().forget(label))

    def rename(self, old: Label, new: Label) -> Self:
        """Give a class another name."""
        with self._turn:
            return self._with(self._fitted().rename(old, new))

    # --- predicting -----------------------------------------------------------------------------------------------

    def predict(self, X: ArrayLike | Sources, *, among: Iterable[Label] | None = None) -> NDArray[Any]:
        """The best class of each sample; with `among`, the best of those."""
        return self.nearest(X, 1, among=among).labels[:, 0]

    def nearest(self, X: ArrayLike | Sources, k: int = 3, *, among: Iterable[Label] | None = None) -> Nearest:
        """The `k` best classes of each sample, their scores, and their probabilities as in `predict_proba`.

        With `among`, the best of those classes, whose probabilities sum to 1.
        """
        model, features = self._ask(X)
        found = model.answer(features, k, among)
        return Nearest(np.asarray(model.learner.labels)[found.rows], found.scores, found.probabilities)

    def decision_function(self, X: ArrayLike | Sources) -> NDArray[np.float32]:
        """The method's score of each class, (n, classes); with two classes, as scikit-learn has it, (n,)."""
        model, scores = self._scores(X)
        values = scores.values[:, _sorted_rows(model)]
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def predict_proba(self, X: ArrayLike | Sources, *, among: Iterable[Label] | None = None) -> NDArray[np.float64]:
        """Softmax over scores / `temperature`: calibrated for whitened prototypes, else an order of preference.

        With `among`, over the scores of those classes, which are the columns, in that order.
        """
        model, scores = self._scores(X)
        chosen = model.candidates(among)
        columns = _sorted_rows(model) if chosen is None else model.learner.rows(chosen)
        logits = scores.values[:, columns].astype(np.float64) / (model.temperature or scores.temperature)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        proba: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
        return proba

    def familiarity(self, X: ArrayLike | Sources) -> NDArray[np.float32]:
        """How much each sample looks like any known class; compare with `unknown_below`."""
        scores = self._scores(X)[1]
        return scores.values.max(axis=1) if scores.novelty is None else -scores.novelty

    def unknown_below(self, share: float = 0.05) -> float | None:
        """The familiarity that about this share of samples of known classes does not reach: what lies below is unknown.

        None for a method that has no measure of that.
        """
        above = self._fitted().unknown_above(share)
        return None if above is None else -above

    def leave_one_out(self, X: ArrayLike | Sources, y: ArrayLike) -> Judgement | None:
        """What the model would say to samples it has just learned had it not; None for a method that cannot tell."""
        model, features = self._ask(X)
        return model.judged(features, list(map(plain, np.asarray(y))))[1]

    def misfits(self, X: ArrayLike | Sources, y: ArrayLike) -> list[Suspect] | None:
        """Samples just learned whose label is likely wrong, the surest first; None for a method that cannot tell."""
        found = self.leave_one_out(X, y)
        return None if found is None else found.suspects(list(map(plain, np.asarray(y))))

    def _scores(self, X: ArrayLike | Sources) -> tuple[Model, Scores]:
        model, features = self._ask(X)
        return model, model.learner.score(model.checked(features))

    def _ask(self, X: ArrayLike | Sources) -> tuple[Model, NDArray[np.float32]]:
        """The model, all of one moment, and features as it takes them."""
        model = self._fitted()
        if not model.learner.labels:
            raise ValueError("every class has been forgotten; teach one with partial_fit")
        return model, validate_data(self, self._vectors(X, model), reset=False, dtype=np.float32, order="C")

    # --- what is known ---------------------------------------------------------------------------------------------

    @property
    def learner_(self) -> Learner:
        """The method itself."""
        return self._fitted().learner

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels known, sorted; columns of `predict_proba` follow them."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("classes_ exists once the classifier is fitted")
        return np.asarray(sorted(self.learner_.labels))

    @property
    def learned_order_(self) -> list[Label]:
        """The labels known, in the order they were learned."""
        return list(self.learner_.labels)

    @property
    def counts_(self) -> NDArray[np.int64] | None:
        """How many samples each class was learned from."""
        model = self._fitted()
        counts = model.learner.counts()
        return None if counts is None else counts[_sorted_rows(model)]

    def memory(self) -> dict[str, int]:
        """The bytes of every array that is kept, by name."""
        return self.learner_.state().memory()

    # --- the model file --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file."""
        self._fitted().save(path)

    def export(self, path: str | os.PathLike[str], *, unknown_below: float | None = None) -> dict[str, Any]:
        """Write the model, its encoder included, as one ONNX graph: pictures in, probabilities out.

        Returns what the graph takes and gives. `unknown_below` is the familiarity below which it calls a picture not
        known; without it, the method's own.
        """
        from engram.store.export import export_model

        above = None if unknown_below is None else -unknown_below
        return export_model(self._fitted(), Path(path), above)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, backbone: str | Encoder | None = None, device: str = "auto") -> Self:
        """Read a model file; going on from it equals never having saved, up to rounding.

        A model of pictures makes its encoder by the recorded name, when a picture comes; give `backbone` where that is
        not enough, as for a weights file of one's own. Another encoder than the recorded one is refused.
        """
        model = Model.load(path)
        if backbone is not None:
            if model.encoder is None:
                raise ValueError("the model was taught with feature vectors; load it without backbone=")
            from engram.encoders.registry import create

            encoder = create(backbone, device) if isinstance(backbone, str) else backbone
            model.encoder.require(encoder)
            model = replace(model, encoder=RecordedEncoder.of(encoder))
        described = model.learner.description()
        clf = cls(
            model.method,
            config=described["config"],
            backbone=backbone or (None if model.encoder is None else model.encoder.name),
            temperature=model.temperature,
            random_state=described["seed"],
            device=device,
        )
        if model.feature_names is not None:
            clf.feature_names_in_ = np.asarray(model.feature_names, dtype=object)
        return clf._with(model)

    # --- scikit-learn's conventions --------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this IncrementalClassifier knows no class yet; call fit or partial_fit first")

    def _fitted(self) -> Model:
        self._require_fitted()
        temperature = plain(self.temperature)
        require_temperature(temperature)
        return replace(self.model_, temperature=temperature)


def _sorted_rows(model: Model) -> NDArray[np.int64]:
    """Where each of the sorted labels is among those of a learner, which has them in the order they were learned."""
    labels: Sequence[Any] = model.learner.labels
    return np.asarray(sorted(range(len(labels)), key=labels.__getitem__), dtype=np.int64)


def _refuse_mixed_labels(y: ArrayLike) -> None:
    """Before numpy makes strings of all of them, as it would of ["cat", 3]."""
    if isinstance(y, list | tuple) or (isinstance(y, np.ndarray) and y.dtype == object):
        labels: Iterable[Any] = y
        if len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError("labels mix str and other types; give them all as str, or all as int")
