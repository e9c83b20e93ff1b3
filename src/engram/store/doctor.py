"""Check the installation, or a model file."""

import importlib.metadata
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import make_blobs

import engram
from engram.backbones.weights import FOLDER_VARIABLE
from engram.device import resolve_device
from engram.estimator import IncrementalClassifier
from engram.images import FeatureCache
from engram.io import model_file
from engram.store.history import Notes
from engram.store.plan import Plan
from engram.store.versions import Versions


def check_machine() -> dict[str, Any]:
    """Versions, device, weights, cache, and a small model that is taught, saved, loaded and asked."""
    packages = ("torch", "numpy", "scikit-learn", "safetensors", "Pillow", "onnx", "onnxruntime", "timm", "matplotlib")
    device = resolve_device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    cache = FeatureCache()
    entries = cache.entries()
    return {
        "engram": engram.__version__,
        "python": platform.python_version(),
        "packages": {package: _version(package) for package in packages},
        "device": {"name": device.type, "model": name, "threads": torch.get_num_threads()},
        "backbone": Plan().new_backbone().identity,
        "weights_folder": os.environ.get(FOLDER_VARIABLE),
        "cache": {
            "folder": str(cache.root),
            "pictures": sum(e.count for e in entries),
            "bytes": sum(e.bytes for e in entries),
            "damaged": len(cache.damaged()),
        },
        "self_test": _self_test(),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _self_test() -> dict[str, Any]:
    """Teach three classes, one of them later; save, load, ask."""
    began = time.perf_counter()
    X, y = make_blobs([24, 24, 24], 16, cluster_std=0.5, random_state=0)
    clf = IncrementalClassifier(random_state=0, device="cpu")
    clf.fit(X[y < 2], y[y < 2]).partial_fit(X[y == 2], y[y == 2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.engram"
        clf.save(path)
        right = IncrementalClassifier.load(path, device="cpu").score(X, y)
    if right < 0.9:
        raise RuntimeError(f"the self-test failed: only {right:.0%} right where all should be")
    return {"right": f"{right:.0%}", "seconds": round(time.perf_counter() - began, 2)}


def check_model(path: Path) -> dict[str, Any]:
    """Compare a model and its kept versions with their checksums; a DamagedModelError names what does not fit."""
    tensors, header = model_file.read(path)
    clf = IncrementalClassifier.load(path, device="cpu")
    notes = Notes.from_json(clf.notes_, path)
    versions = Versions(path)
    for number in versions.numbers():
        model_file.read(versions.path(number))
    return {
        "path": str(path),
        "whole": True,
        "tensors": len(tensors),
        "bytes": path.stat().st_size,
        "written_by": f"engram {header['engram_version']}",
        "classes": len(clf.classes_),
        "version": notes.version,
        "previous_versions": len(versions.numbers()),
    }
