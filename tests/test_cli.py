"""The command line, run as a person would run it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

import engram
from engram.bench.inputs import import_features, load_features


def engram_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from engram.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


@pytest.fixture(scope="module")
def demo(tmp_path_factory, engram_in) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, engram_in(folder, "demo", "--json", "-", "--device", "cpu")


def test_demo_writes_its_numbers(demo):
    _, done = demo
    assert done.code == 0, done.err
    result = done.json
    assert result["dataset"] == "digits"
    assert 0.9 < result["alpha_ideal"] <= 1
    assert [row["method"] for row in result["rows"]] == ["whitened", "mas", "si", "mas-lof", "si-lof", "unconsolidated"]
    for row in result["rows"]:
        assert set(row) == {"method", "psi_base", "psi_new", "psi_all", "seconds"}
        assert row["seconds"] > 0
        assert 0 <= row["psi_new"] <= 1
        assert f"{row['psi_all']:.3f}" in done.err  # the table


def test_demo_shows_forgetting_and_remembering(demo):
    rows = {row["method"]: row for row in demo[1].json["rows"]}
    assert rows["unconsolidated"]["psi_base"] < 0.4
    for method in ("mas", "si", "mas-lof", "si-lof"):
        assert rows[method]["psi_base"] > 0.85, method
        assert rows[method]["psi_all"] > 0.85, method


def test_demo_draws_a_picture(demo):
    folder, _ = demo
    with Image.open(folder / "engram-demo.png") as picture:
        assert picture.width > 800
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 100


def test_version_and_help(tmp_path):
    assert engram_command("--version", cwd=tmp_path).stdout.strip() == engram.__version__
    assert "demo" in engram_command("--help", cwd=tmp_path).stdout


def test_an_error_is_one_line_that_says_what_to_do(tmp_path):
    process = engram_command("demo", "--device", "warp", cwd=tmp_path)
    assert process.returncode == 2
    assert process.stderr.strip() == "error: unknown device 'warp'; use 'auto', 'cpu' or 'cuda'"
    assert not process.stdout


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
        (("features", "folder", "--data", "pictures", "--backbone", "vgg99"), "no backbone is called 'vgg99'"),
        (("features", "folder", "--data", "pictures", "--weights", "no.pth"), "no.pth does not exist"),
        (("features", "digits"), "feature vectors already"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments, message, folder_of_pictures, engram):
    done = engram(*arguments)
    assert done.code == 2, done.out + done.err
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
