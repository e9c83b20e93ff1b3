from pathlib import Path

import pytest
from toys import paint, quick_plan

from engram.store import ModelStore, learn_classes


@pytest.fixture(scope="session")
def base_bytes(tmp_path_factory) -> bytes:
    """A model that knows red, green and blue."""
    folder = tmp_path_factory.mktemp("base")
    place = ModelStore(folder / "m.engram", device="cpu")
    pictures = paint(folder / "pictures", "red", "green", "blue", n=20)
    learn_classes(place, {c.name: sorted(c.iterdir()) for c in sorted(pictures.iterdir())}, quick_plan())
    return place.path.read_bytes()


@pytest.fixture
def place(tmp_path: Path, base_bytes: bytes) -> ModelStore:
    (tmp_path / "m.engram").write_bytes(base_bytes)
    return ModelStore(tmp_path / "m.engram", device="cpu", wait=0.3)
