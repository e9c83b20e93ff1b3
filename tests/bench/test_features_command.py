"""engram features and engram cache: features are computed once, kept, carried elsewhere, and cleared."""

from pathlib import Path

import pytest
import torch
from PIL import Image
from toys import paint

from engram.bench.inputs import import_features, load_features


@pytest.fixture
def folder_of_pictures(tmp_path) -> Path:
    for split, n in (("train", 3), ("test", 2)):
        for colour in ("red", "green"):
            (tmp_path / "pictures" / split / colour).mkdir(parents=True)
            for i in range(n):
                picture = Image.new("RGB", (40, 30), colour)
                picture.putpixel((i, 0), (0, 0, 255))
                picture.save(tmp_path / "pictures" / split / colour / f"{i}.png")
    (tmp_path / "pictures" / "train" / "red" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not much of a picture")
    return tmp_path


def files_below(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_features_are_computed_once_listed_and_cleared(folder_of_pictures, engram):
    run = ("features", "folder", "--data", "pictures", "--cache", "kept", "--device", "cpu")
    first = engram(*run)
    assert first.code == 0, first.err
    assert "folder train: 6 pictures, 1280 features each" in first.out
    assert "folder test: 4 pictures, 1280 features each" in first.out
    assert "broken.jpg" in first.err
    assert "1 pictures could not be read and were skipped" in first.err
    kept = files_below(folder_of_pictures / "kept")
    assert kept
    assert engram(*run).code == 0
    assert files_below(folder_of_pictures / "kept") == kept

    strict = engram(*run, "--strict")
    assert strict.code == 2
    assert "broken.jpg" in strict.err
    assert len(strict.err.strip().splitlines()) == 1

    listed = engram("cache", "--cache", "kept", "--json").json
    assert [(entry["count"], entry["dtype"]) for entry in listed] == [(6, "float32")]  # equal pictures are kept once
    assert listed[0]["identity"].startswith("efficientnet_lite0:pooled@224:sha256-")
    wrong = engram("cache", "--cache", "kept", "clear", "nothing", "--yes")
    assert wrong.code == 2
    exported = engram(*run, "--export", "features.safetensors", "--half", "--json")
    assert exported.code == 0, exported.err
    said = exported.json
    assert said["train"] == {"pictures": 6, "features": 1280, "skipped": 1}
    assert said["export"] == "features.safetensors"
    carried = import_features(folder_of_pictures / "features.safetensors", "folder", "cpu")
    here = load_features("folder", folder_of_pictures / "pictures", cache=folder_of_pictures / "kept", device="cpu")
    assert carried.backbone == here.backbone
    for one, other in ((carried.train, here.train), (carried.test, here.test)):
        assert one.y.tolist() == other.y.tolist()
        torch.testing.assert_close(one.X, other.X.half().float(), rtol=0, atol=0)
    other = engram("bench", "cub200", "--features", "features.safetensors")
    assert (other.code, len(other.err.strip().splitlines())) == (2, 1)
    assert "holds features of folder, not features of cub200" in other.err
    cleared = engram("cache", "--cache", "kept", "clear", "--yes")
    assert cleared.code == 0
    assert engram("cache", "--cache", "kept", "--json").json == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("features", "cifar100", "--data", "nowhere"), "nowhere"),
        (("features", "imagenet", "--data", "."), "no data set is called 'imagenet'"),
        (("features", "folder", "--data", "pictures", "--backbone", "vgg99"), "'vgg99'"),
        (("features", "folder", "--data", "pictures", "--weights", "no.pth"), "no.pth"),
        (("features", "digits"), "feature vectors already"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments, message, folder_of_pictures, engram):
    done = engram(*arguments)
    assert done.code == 2, done.out + done.err
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err


def test_what_is_kept_is_listed_and_cleared(engram, tmp_path):
    paint(tmp_path / "pictures", "red", "blue", n=3)
    run = ("--cache", "kept")
    features = ("features", "folder", "--data", "pictures", "--backbone", "averages", "--device", "cpu")
    assert "no features are kept in kept" in engram("cache", *run).out
    filled = engram(*features, *run, "--json")
    assert filled.json["train"] == {"pictures": 6, "features": 8, "skipped": 0}
    (entry,) = engram("cache", *run, "--json").json
    assert (entry["count"], entry["dtype"]) == (6, "float32")
    assert entry["identity"] == filled.json["backbone"]
    assert entry["identity"] in engram("cache", *run).out
    wrong = engram("cache", *run, "clear", "vgg16", "--yes")
    assert wrong.code == 2
    assert f"no features of 'vgg16' are kept; there are {entry['identity']}" in wrong.err
    assert "MB removed" in engram("cache", *run, "clear", entry["identity"], "--yes").out
    assert engram("cache", *run, "--json").json == []


def test_a_damaged_file_of_the_cache_is_named_and_stands_in_nobodys_way(engram, tmp_path, monkeypatch):
    paint(tmp_path / "p", "red", "green")
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "kept"))
    features = ("features", "folder", "--data", "p", "--backbone", "averages")
    assert engram(*features).code == 0
    (shard,) = (tmp_path / "kept").rglob("*.safetensors")
    raw = shard.read_bytes()
    shard.write_bytes(raw.replace(b'"identity"', b'"identitx"'))
    listed = engram("cache")
    assert listed.code == 0
    assert f"damaged, and used no more; engram cache clear removes it: {shard}" in listed.err
    again = engram(*features)
    aside = shard.with_name(shard.name + ".damaged")
    told = f"a damaged file of the cache was set aside, and its features were computed again: {aside}"
    assert (again.code, told in again.err) == (0, True)
    assert aside.read_bytes() != raw
    assert engram(*features).err.count("damaged") == 0
    assert engram("cache", "--json").json[0]["count"] == 16
    assert engram("cache", "clear", "--yes").code == 0
    assert list((tmp_path / "kept").rglob("*.*")) == []
