"""Check the installation, or a model file."""

import importlib.metadata
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import engram
from engram.encoders.onnx import devices
from engram.encoders.weights import FOLDER_VARIABLE
from engram.files import model_file
from engram.images.stream import cores
from engram.model import Model
from engram.store.plan import Plan
from engram.store.versions import Versions

_PACKAGES = ("numpy", "onnxruntime", "Pillow", "safetensors", "scikit-learn", "torch", "timm", "matplotlib")


def check_machine() -> dict[str, Any]:
    """Versions, devices, weights, and a small model that is taught, saved, loaded and asked."""
    model = Plan().new_model()
    return {
        "engram": engram.__version__,
        "python": platform.python_version(),
        "packages": {package: _version(package) for package in _PACKAGES},
        "devices": devices(),
        "processor": {"name": platform.processor() or platform.machine(), "threads": cores()},
        "backbone": model.encoder and model.encoder.identity,
        "weights_folder": os.environ.get(FOLDER_VARIABLE),
        "self_test": _self_test(),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _self_test() -> dict[str, Any]:
    """Teach three classes, one of them later; save, load, ask."""
    began, random = time.perf_counter(), np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 24)
    x = random.normal(size=(3, 16))[y] * 4 + random.normal(size=(72, 16)) / 2
    model, _ = Model.new().learn(x[y < 2], y[y < 2])
    model, _ = model.learn(x[y == 2], y[y == 2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.engram"
        model.save(path)
        model = Model.load(path)
    right = float(np.mean(np.array(model.labels)[model.answer(x).rows[:, 0]] == y))
    if right < 0.9:
        raise RuntimeError(f"the self-test failed: only {right:.0%} right where all should be")
    return {"right": f"{right:.0%}", "seconds": round(time.perf_counter() - began, 2)}


def check_model(path: Path) -> dict[str, Any]:
    """Compare a model and its kept versions with their checksums; a DamagedModelError names what does not fit."""
    arrays, header = model_file.read(path)
    model, versions = Model.load(path), Versions(path)
    for number in versions.numbers():
        model_file.read(versions.path(number))
    return {
        "path": str(path),
        "whole": True,
        "tensors": len(arrays),
        "bytes": path.stat().st_size,
        "written_by": f"engram {header['engram_version']}",
        "classes": len(model.learner.labels),
        "version": model.notes.version,
        "previous_versions": len(versions.numbers()),
    }
