"""Real pictures and real weights, where they are at hand: tests that need others' files say so when they skip."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from engram.images.stream import encode_all

SHARED = Path(__file__).parents[2].parent / "shared"


@pytest.fixture(autouse=True)
def own_environment(request, monkeypatch):
    """Keep a developer's weights folder out of the tests that do not ask for it."""
    if "weights_folder" not in request.fixturenames:
        monkeypatch.delenv("ENGRAM_WEIGHTS", raising=False)


@pytest.fixture(scope="session")
def shared_weights():
    folder = SHARED / "weights"
    if not folder.is_dir():
        pytest.skip("no pretrained VGG weights at ../shared/weights")
    return folder


@pytest.fixture(scope="session")
def cifar_images():
    """A few CIFAR-100 test images, uint8 (6, 32, 32, 3)."""
    path = SHARED / "data" / "cifar100.zip"
    if not path.is_file():
        pytest.skip("no CIFAR-100 at ../shared/data/cifar100.zip")
    with zipfile.ZipFile(path) as pack:
        strips = [Image.open(io.BytesIO(pack.read(f"test/{name}.webp"))) for name in ("apple", "fox", "tank")]
    return np.concatenate([np.asarray(strip.convert("RGB")).reshape(-1, 32, 32, 3)[:2] for strip in strips])


@pytest.fixture(scope="session")
def albatrosses():
    """Photographs of three species of albatross, from CUB-200-2011."""
    root = os.environ.get("ENGRAM_DATA")
    folder = Path(root) / "CUB_200_2011" / "images" if root else None
    if folder is None or not folder.is_dir():
        pytest.skip("no CUB_200_2011 in the folder ENGRAM_DATA names")
    return [Image.open(path).convert("RGB") for path in sorted(folder.glob("00[123].*Albatross/*.jpg"))[::7]]


@pytest.fixture(scope="session")
def probability_of_albatross():
    """Top-1 rate and mean probability of ImageNet's class 146, albatross, by an encoder cut at its logits."""

    def ask(encoder, pictures):
        logits = torch.from_numpy(encode_all(pictures, encoder).features)
        return (logits.argmax(1) == 146).float().mean().item(), logits.softmax(1)[:, 146].mean().item()

    return ask
