import pytest
from PIL import Image

from engram.datasets.dataset import Split, image_folder
from engram.errors import DataError


def make_folder(root, spec):
    for name in spec:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".png", ".JPG"):
            Image.new("RGB", (4, 4)).save(path, format="PNG")
        elif path.suffix:
            path.write_text("x")
        else:
            path.mkdir(exist_ok=True)


def test_one_folder_per_class(tmp_path):
    make_folder(tmp_path, ["b/2.png", "b/1.JPG", "a/deep/er/x.png", "a/.hidden.png", "a/.git/y.png", "a/notes.txt"])
    make_folder(tmp_path, [".cache/z.png", "readme.md"])
    data = image_folder(tmp_path)
    assert data.name == tmp_path.name
    assert data.classes == ["a", "b"]
    assert data.train.images == [tmp_path / name for name in ("a/deep/er/x.png", "b/1.JPG", "b/2.png")]
    assert data.train.labels == ["a", "b", "b"]
    assert list(data.train.left_out) == [
        (tmp_path / "a/notes.txt", "by its name not a picture that engram reads"),
        (tmp_path / "readme.md", "by its name not a picture that engram reads"),
    ]
    assert data.test is None


def test_train_and_test_folders(tmp_path):
    make_folder(tmp_path, ["train/a/1.png", "train/b/2.png", "test/b/3.png"])
    data = image_folder(str(tmp_path))
    assert data.classes == ["a", "b"]
    assert data.train.labels == ["a", "b"]
    assert data.test == Split([tmp_path / "test/b/3.png"], ["b"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([], "holds no folders"),
        (["x.png"], "holds no folders"),
        (["a/1.png", "b"], "b holds no pictures"),
        (["a/1.png", "b/notes.txt"], "b holds no pictures"),
        (["train/a/1.png", "test/a/1.png", "test/z/1.png"], "has not: z"),
        (["train/a/1.png", "test/readme.txt"], "test holds no folders"),
    ],
)
def test_folders_that_are_no_data_set(tmp_path, spec, message):
    make_folder(tmp_path, spec)
    with pytest.raises(DataError, match=message) as caught:
        image_folder(tmp_path)
    assert "\n" not in str(caught.value)


def test_no_folder_at_all(tmp_path):
    with pytest.raises(DataError, match="is not a folder"):
        image_folder(tmp_path / "absent")
