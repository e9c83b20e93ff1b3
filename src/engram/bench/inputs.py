"""Features of a data set, ready for the benchmark."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import train_test_split

from engram.bench.cache import FeatureCache
from engram.bench.datasets import load
from engram.bench.protocol import Samples
from engram.datasets.dataset import Split
from engram.encoders.registry import create
from engram.files import model_file
from engram.paper.device import resolve_device


@dataclass(frozen=True)
class Inputs:
    """Training and test features on the device, and which encoder made them."""

    train: Samples
    test: Samples
    backbone: str


def load_features(
    dataset: str,
    root: Path | None = None,
    *,
    backbone: str = "efficientnet_lite0",
    weights: Path | None = None,
    cache: Path | None = None,
    half: bool = False,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Inputs:
    """Read a data set and its features, through the cache; the digits are feature vectors as they are.

    A quarter of every class is held out for testing where the data set has no test split of its own.
    """
    where = resolve_device(device)
    data = load(dataset, root)
    if dataset == "digits" and data.test is not None:
        return Inputs(_vectors(data.train, where), _vectors(data.test, where), "pixels")
    network = create(backbone, device, weights=weights)
    store = FeatureCache(cache, dtype="float16" if half else "float32")

    def features(split: Split) -> Samples:
        found = store.features(split.images, network, progress=progress)
        return Samples(torch.from_numpy(found.values).to(where, torch.float32), np.asarray(split.labels)[found.kept])

    train = features(data.train)
    if data.test is not None:
        return Inputs(train, features(data.test), network.identity.text)
    rest, held = train_test_split(np.arange(len(train.y)), test_size=0.25, stratify=train.y, random_state=0)
    return Inputs(train.at(rest), train.at(held), network.identity.text)


def export_features(path: Path, dataset: str, inputs: Inputs, *, half: bool = False) -> None:
    """Write features and labels as one checked file, to be used where the images are not."""
    splits = {"train": inputs.train, "test": inputs.test}
    labels = {name: samples.y.tolist() for name, samples in splits.items()}
    arrays = {
        f"{name}.features": samples.X.cpu().numpy().astype(np.float16 if half else np.float32)
        for name, samples in splits.items()
    }
    model_file.write(path, arrays, {"features": {"dataset": dataset, "backbone": inputs.backbone, "labels": labels}})


def import_features(path: Path, dataset: str, device: str = "auto") -> Inputs:
    """What `export_features` wrote."""
    arrays, header = model_file.read(path)
    about = header.get("features")
    if about is None or about["dataset"] != dataset:
        held = f"features of {about['dataset']}" if about else "a model"
        raise ValueError(f"{path} holds {held}, not features of {dataset}; make them with: engram features {dataset}")
    where = resolve_device(device)

    def samples(name: str) -> Samples:
        return Samples(
            torch.from_numpy(arrays[f"{name}.features"]).to(where, torch.float32), np.asarray(about["labels"][name])
        )

    return Inputs(samples("train"), samples("test"), about["backbone"])


def _vectors(split: Split, device: torch.device) -> Samples:
    return Samples(torch.from_numpy(np.asarray(split.images, np.float32)).to(device), np.asarray(split.labels))
