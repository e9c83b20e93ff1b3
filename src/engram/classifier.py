"""IncrementalClassifier: the scikit-learn estimator people import."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from engram import modelfile
from engram.backbones import Backbone
from engram.device import resolve_device
from engram.methods import METHODS
from engram.methods.base import MemoryTable, State
from engram.methods.prototypes import PrototypeConfig, PrototypeLearner
from engram.nn.prototypes import Label
from engram.nn.training import Progress
from engram.pictures import PictureInput, Pictures


class IncrementalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns new classes one at a time and keeps one mean vector per class, no old data.

    `fit` trains the base; `partial_fit` then learns what is new, under class names nobody announced before. X is a
    table of feature vectors or, with a backbone, pictures: paths, PIL images, or one uint8 array (N, H, W, 3).

    Parameters
    ----------
    backbone : name of a frozen network (see `engram.backbones.names`) or one made by `engram.backbones.create`, which
        turns pictures into features; None takes feature vectors only.
    layers : sizes of the encoder's layers; the last is the length of a code and of a class mean.
    consolidation : "mas", "si" or None (plain fine-tuning).
    outlier_exclusion : base means without local outliers, then training towards them.
    pairs : "random" (as the paper) or "all" pairs of a mini-batch in the cosine loss.
    feature_rms : features are scaled so that the base data has this root mean square; None leaves them.
    lambda_mse, lambda_cos, lambda_l1, lambda_reg, lambda_center : weights of the losses.
    batch_size, base_epochs, base_rate, base_decay, base_decay_every : base training.
    increment_epochs, increment_rate : training of every later task.
    center_epochs, center_rate : training towards the cleaned means.
    si_damping, lof_neighbours : ξ of SI; neighbours of Local Outlier Factor.
    kept_bits : 8 keeps what only the next increment needs, the decoder and the importance, in a quarter of the room.
    temperature : of the softmax in `predict_proba`.
    random_state : int, RandomState or None.
    device : "auto" (CUDA if there is one), "cpu", "cuda".
    progress : called with an `engram.Progress` after every epoch.

    Attributes
    ----------
    classes_ : labels known, the base's sorted, later ones in the order they were learned.
    n_features_in_ : features per sample.
    backbone_identity_ : which network made the features, down to a hash of its weights; None for feature vectors.
    backbone_ : that network itself.
    notes_ : anything JSON can hold that is to travel with the model in its file; `fit` starts with none.
    learner_ : the method itself.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from engram import IncrementalClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = IncrementalClassifier(layers=(64, 64), feature_rms=2.0, base_rate=1e-3, base_epochs=10, random_state=0)
    >>> clf = clf.fit(X[y < 5], y[y < 5])
    >>> clf = clf.partial_fit(X[y == 7], y[y == 7])
    >>> clf.classes_.tolist()
    [0, 1, 2, 3, 4, 7]
    """

    def __init__(
        self,
        *,
        backbone: str | Backbone | None = None,
        layers: Sequence[int] = (1024, 1024),
        consolidation: Literal["mas", "si"] | None = "mas",
        outlier_exclusion: bool = False,
        pairs: Literal["random", "all"] = "random",
        feature_rms: float | None = 0.1,
        lambda_mse: float = 1.0,
        lambda_cos: float = 10.0,
        lambda_l1: float = 1e-3,
        lambda_reg: float = 10.0,
        lambda_center: float = 1.0,
        batch_size: int = 64,
        base_epochs: int = 100,
        base_rate: float = 1e-4,
        base_decay: float = 1.0,
        base_decay_every: int = 25,
        increment_epochs: int = 50,
        increment_rate: float = 2e-4,
        center_epochs: int = 10,
        center_rate: float = 1e-4,
        si_damping: float = 1e-3,
        lof_neighbours: int = 20,
        kept_bits: Literal[8, 32] = 32,
        temperature: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.backbone = backbone
        self.layers = layers
        self.consolidation = consolidation
        self.outlier_exclusion = outlier_exclusion
        self.pairs = pairs
        self.feature_rms = feature_rms
        self.lambda_mse = lambda_mse
        self.lambda_cos = lambda_cos
        self.lambda_l1 = lambda_l1
        self.lambda_reg = lambda_reg
        self.lambda_center = lambda_center
        self.batch_size = batch_size
        self.base_epochs = base_epochs
        self.base_rate = base_rate
        self.base_decay = base_decay
        self.base_decay_every = base_decay_every
        self.increment_epochs = increment_epochs
        self.increment_rate = increment_rate
        self.center_epochs = center_epochs
        self.center_rate = center_rate
        self.si_damping = si_damping
        self.lof_neighbours = lof_neighbours
        self.kept_bits = kept_bits
        self.temperature = temperature
        self.random_state = random_state
        self.device = device
        self.progress = progress

    # --- learning -------------------------------------------------------------------------------------------------

    def fit(self, X: ArrayLike | Pictures, y: ArrayLike) -> Self:
        """Base training: start over with these classes."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        learner = PrototypeLearner(self._config(), seed=seed, device=self.device)
        given = PictureInput(self.backbone, self.device)
        self._learn(learner, given, X, y, reset=True)
        self.notes_: dict[str, Any] = {}
        return self

    def partial_fit(self, X: ArrayLike | Pictures, y: ArrayLike) -> Self:
        """Learn one task more: classes with new names, or more data of known ones. The first call is `fit`.

        A known class's mean becomes the mean of its old samples' codes, as they were when they were learned, and the
        new samples' codes, as they are now.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        return self._learn(self.learner_, self._input, X, y, reset=False)

    def _learn(
        self, learner: PrototypeLearner, given: PictureInput, X: ArrayLike | Pictures, y: ArrayLike, reset: bool
    ) -> Self:
        _refuse_mixed_labels(y)
        before = dict(vars(self))
        try:
            vectors = given.vectors(X)
            features, labels = validate_data(self, vectors, y, reset=reset, dtype=np.float32, order="C")
            check_classification_targets(labels)
            learner.learn(features, labels, self.progress)
        except BaseException:
            self.__dict__ = before  # scikit-learn notes the width of X before anything is learned from it
            raise
        self.learner_, self._input, self.backbone_identity_ = learner, given, given.identity
        return self

    def _config(self) -> PrototypeConfig:
        return PrototypeConfig(**{f.name: getattr(self, f.name) for f in fields(PrototypeConfig)})

    # --- predicting -----------------------------------------------------------------------------------------------

    def predict(self, X: ArrayLike | Pictures) -> NDArray[Any]:
        """The class whose mean has the smallest cosine distance to the code of each sample (Eq. 1)."""
        best: NDArray[np.intp] = self._similarity(X).argmax(axis=1)
        return self.classes_[best]

    def decision_function(self, X: ArrayLike | Pictures) -> NDArray[np.float32]:
        """Cosine similarity to each class mean, (n, classes); with two classes, as scikit-learn has it, (n,)."""
        similarity = self._similarity(X)
        return similarity[:, 1] - similarity[:, 0] if similarity.shape[1] == 2 else similarity

    def predict_proba(self, X: ArrayLike | Pictures) -> NDArray[np.float64]:
        """Softmax over cosine similarity / `temperature`: an order of preference, not a calibrated probability."""
        logits = self._similarity(X).astype(np.float64) / self.temperature
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        proba: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
        return proba

    def _similarity(self, X: ArrayLike | Pictures) -> NDArray[np.float32]:
        self._require_fitted()
        if not len(self.classes_):
            raise ValueError("every class has been forgotten; teach one with partial_fit")
        features = self._input.vectors(X)
        return self.learner_.scores(validate_data(self, features, reset=False, dtype=np.float32, order="C"))

    # --- what is known ---------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels known; columns of `predict_proba` follow them."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("classes_ exists once the classifier is fitted")
        return np.asarray(self.learner_.labels)

    @property
    def backbone_(self) -> Backbone:
        """The frozen network the model was taught with, made when it is first asked for."""
        self._require_fitted()
        return self._input.network()

    def forget(self, label: Label) -> Self:
        """Remove a class: its name, its mean and its count. ValueError if it is not known."""
        self._require_fitted()
        self.learner_.forget(label)
        return self

    def rename(self, old: Label, new: Label) -> Self:
        """Give a class another name."""
        self._require_fitted()
        self.learner_.rename(old, new)
        return self

    def memory(self) -> MemoryTable:
        """Every tensor that is kept: name -> shape, dtype, bytes, in the groups network, class memory and
        consolidation state.
        """
        self._require_fitted()
        return self.learner_.memory()

    # --- the model file --------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, slim: bool = False) -> None:
        """Write the model file. `slim` leaves out what only further learning needs: such a model only predicts."""
        self._require_fitted()
        state = self.learner_.state(slim=slim)
        header = {
            "method": self.learner_.method,
            "learner": state.meta,
            "backbone": self._input.as_json(),
            "estimator": {"temperature": self.temperature},
            "notes": self.notes_,
        }
        modelfile.write(path, state.tensors, header)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, backbone: str | Backbone | None = None, device: str = "auto"
    ) -> Self:
        """Read a model file; going on from it equals never having saved.

        A model of pictures makes its backbone by the recorded name, when a picture comes; give `backbone` where that
        is not enough, as for a weights file of one's own. Another network than the recorded one is refused.
        """
        resolve_device(device)  # a device that is not there is no fault of the file
        tensors, header = modelfile.read(path)
        try:
            learner = METHODS[header["method"]].from_state(State(tensors, header["learner"]), device)
            assert isinstance(learner, PrototypeLearner)
            config = {f.name: getattr(learner.config, f.name) for f in fields(PrototypeConfig)}
            clf = cls(**config, **header["estimator"], random_state=learner.seed, device=device)
            notes = dict(header.get("notes", {}))  # files of before there were notes have none
            recorded = header["backbone"]
            assert recorded is None or (isinstance(recorded["identity"], str) and "name" in recorded), "no backbone"
        except (LookupError, TypeError, ValueError, AttributeError, AssertionError, RuntimeError) as error:
            reason = modelfile.one_line(error)
            raise modelfile.ModelFileError(f"{path} is not a model this version can use: {reason}") from error
        given = PictureInput.from_json(recorded, backbone, device)
        clf.backbone, clf.notes_ = given.backbone, notes
        clf.learner_, clf._input, clf.backbone_identity_ = learner, given, given.identity
        clf.n_features_in_ = learner.n_features
        return clf

    # --- scikit-learn's conventions --------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learner_")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this IncrementalClassifier knows no class yet; call fit or partial_fit first")


def _refuse_mixed_labels(y: ArrayLike) -> None:
    """Before numpy makes strings of all of them, as it would of ["cat", 3]."""
    if isinstance(y, list | tuple) or (isinstance(y, np.ndarray) and y.dtype == object):
        labels: Iterable[Any] = y
        if len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError("labels mix str and other types; give them all as str, or all as int")
