"""What one more class costs: every picture opened once, mapped once, left out once; known pictures are not opened."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from toys import paint, quick_plan

from engram.datasets.folders import class_folders
from engram.learners.whitened import Whitened
from engram.stats.whitening import Space
from engram.store import ModelStore, learn_classes, predict_images


class Opened:
    """The files in a folder that are opened, as the interpreter itself tells; a hook cannot be taken off again."""

    def __init__(self) -> None:
        self.under: Path | None = None
        self.files: list[Path] = []
        sys.addaudithook(self.note)

    def note(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and self.under is not None and isinstance(arguments[0], str | bytes | Path):
            path = Path(arguments[0] if not isinstance(arguments[0], bytes) else arguments[0].decode())
            if self.under in path.absolute().parents:
                self.files.append(path)

    def pictures(self) -> Counter[Path]:
        return Counter(path for path in self.files if path.suffix == ".png")

    def others(self) -> set[Path]:
        return {path for path in self.files if path.suffix != ".png" and not path.is_dir()}


@pytest.fixture(scope="module")
def hook() -> Opened:
    return Opened()


@pytest.fixture
def opened(hook: Opened, tmp_path: Path) -> Iterator[Opened]:
    hook.under, hook.files = tmp_path, []
    yield hook
    hook.under = None


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often samples are mapped, whitened and left out."""
    counted = Counter[str]()

    def count(kind: type, name: str) -> None:
        real: Callable[..., object] = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *given: (counted.update([name]), real(*given))[1])

    count(Whitened, "project")
    count(Space, "whiten")
    count(Space, "left_out")
    return counted


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    """Has learned ten pictures of each of three classes, in this process."""
    place = ModelStore(tmp_path / "m.engram")
    learn_classes(place, class_folders(paint(tmp_path / "p", "red", "green", "blue", n=10)), quick_plan())
    return place


def test_a_class_of_ten_beside_thirty_known_pictures(store, tmp_path, opened, calls):
    folders = class_folders(paint(tmp_path / "p", "cyan", n=10))
    opened.files.clear()
    calls.clear()
    report = learn_classes(store, folders, quick_plan())
    assert sorted(report.known) == ["blue", "green", "red"]
    assert opened.pictures() == Counter(folders["cyan"])
    # The lock, its record, the model, what is remembered of its folders before and after.
    assert len(opened.others()) == 5, opened.others()
    assert calls == {"project": 1, "whiten": 1, "left_out": 1}


def test_a_base_is_mapped_once_too(tmp_path, opened, calls):
    folders = class_folders(paint(tmp_path / "p", "red", "green"))
    opened.files.clear()
    learn_classes(ModelStore(tmp_path / "m.engram"), folders, quick_plan())
    assert opened.pictures() == Counter([path for paths in folders.values() for path in paths])
    assert calls == {"project": 1, "whiten": 1, "left_out": 1}


@pytest.mark.parametrize("content", [None, "{", "[]", '{"a": 1}'])
def test_without_what_is_remembered_of_known_pictures_each_is_read_once(content, store, tmp_path, opened):
    folders, cache = class_folders(tmp_path / "p"), tmp_path / ".m.engram.seen"
    cache.unlink() if content is None else cache.write_text(content)
    opened.files.clear()
    assert len(learn_classes(store, folders, quick_plan()).known) == 3
    assert opened.pictures() == Counter([path for paths in folders.values() for path in paths])
    opened.files.clear()
    assert len(learn_classes(store, folders, quick_plan()).known) == 3
    assert not opened.pictures()


def test_a_known_picture_that_has_changed_is_read(store, tmp_path, opened):
    (tmp_path / "p" / "red" / "0-0.png").write_bytes((tmp_path / "p" / "blue" / "0-0.png").read_bytes())
    opened.files.clear()
    assert learn_classes(store, class_folders(tmp_path / "p"), quick_plan()).changed == ["red"]
    assert {path.parent.name for path in opened.pictures()} == {"red"}


def test_a_question_opens_the_picture_alone(store, tmp_path, opened, calls):
    model = store.read()
    calls.clear()
    list(predict_images(model, [tmp_path / "p" / "red" / "0-0.png"]))
    assert [path.name for path in opened.files] == ["0-0.png"]
    assert calls == {"project": 1, "whiten": 1}
