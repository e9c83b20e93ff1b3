from pathlib import Path

import pytest
from toys import paint, quick_plan

from engram.store import Workshop, learn


@pytest.fixture(scope="session")
def base_bytes(tmp_path_factory) -> bytes:
    """A model that knows red, green and blue."""
    folder = tmp_path_factory.mktemp("base")
    place = Workshop(folder / "m.engram", device="cpu")
    pictures = paint(folder / "pictures", "red", "green", "blue", n=20)
    learn(place, {c.name: sorted(c.iterdir()) for c in sorted(pictures.iterdir())}, quick_plan())
    return place.path.read_bytes()


@pytest.fixture
def place(tmp_path: Path, base_bytes: bytes) -> Workshop:
    (tmp_path / "m.engram").write_bytes(base_bytes)
    return Workshop(tmp_path / "m.engram", device="cpu", wait=0.3)
