import pickle
import urllib.error

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from engram.backbones.base import hash_tensors
from engram.backbones.registry import make
from engram.backbones.weights import Loaded, fit
from engram.encoders.base import EncoderError
from engram.encoders.weights import FOLDER_VARIABLE
from engram.encoders.weights import find_in_folder as find


@pytest.fixture(scope="module")
def conv4_1():
    """VGG-16 as far as conv4_1, zeros but for a little noise in the first layer."""
    widths = ((0, 3, 64), (2, 64, 64), (5, 64, 128), (7, 128, 128), (10, 128, 256), (12, 256, 256), (14, 256, 256))
    state = {}
    for index, inputs, outputs in (*widths, (17, 256, 512)):
        state[f"features.{index}.weight"] = torch.zeros(outputs, inputs, 3, 3)
        state[f"features.{index}.bias"] = torch.zeros(outputs)
    state["features.0.weight"] += torch.randn(64, 3, 3, 3, generator=torch.Generator().manual_seed(0))
    return state


def test_pth_and_safetensors_of_the_same_weights_are_the_same_backbone(conv4_1, tmp_path):
    torch.save(conv4_1, tmp_path / "a.pth")
    torch.save(dict(reversed(conv4_1.items())), tmp_path / "b.pt")
    save_file(conv4_1, tmp_path / "c.safetensors")
    identities = {make("vgg16", weights=tmp_path / f).identity.text for f in ("a.pth", "b.pt", "c.safetensors")}
    assert len(identities) == 1
    assert identities == {make("vgg16", weights=str(tmp_path / "a.pth")).identity.text}


def test_the_identity_changes_with_one_weight(conv4_1):
    changed = {**conv4_1, "features.17.bias": conv4_1["features.17.bias"].clone()}
    changed["features.17.bias"][511] = 1e-7
    before, after = (make("vgg16", weights=state).identity.text for state in (conv4_1, changed))
    assert before != after
    assert before.rpartition("-")[0] == after.rpartition("-")[0] == "vgg16:conv4_1@32:sha256"
    assert len(before.rpartition("-")[2]) == 16


def test_the_hash_knows_names_and_bytes_but_not_their_order():
    one, two = torch.tensor([1.0]), torch.tensor([2.0])
    assert hash_tensors({"a": one, "b": two}) == hash_tensors({"b": two, "a": one})
    assert hash_tensors({"a": one, "b": two}) != hash_tensors({"a": two, "b": one})
    assert hash_tensors({"a": one, "bn.num_batches_tracked": two}) == hash_tensors({"a": one})
    assert hash_tensors({}) == ""


def test_half_precision_files_become_float32(conv4_1):
    backbone = make("vgg16", weights={key: value.half() for key, value in conv4_1.items()})
    assert backbone.encode(np.zeros((1, 32, 32, 3), np.uint8)).dtype == np.float32


def test_missing_and_misshapen_keys_are_named_and_counted(conv4_1, tmp_path):
    broken = {key: value for key, value in conv4_1.items() if not key.startswith(("features.1", "features.7"))}
    broken["features.0.weight"] = torch.zeros(64, 3, 7, 7)
    path = tmp_path / "broken.safetensors"
    save_file(broken, path)
    with pytest.raises(EncoderError) as error:
        make("vgg16", weights=path)
    message = str(error.value)
    assert str(path) in message
    assert "10 keys missing (features.7.weight, features.7.bias, features.10.weight, features.10.bias, …)" in message
    assert "1 key of the wrong shape (features.0.weight is 64×3×7×7, not 64×3×3×3)" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("absent.pth", None, "does not exist"),
        ("weights.h5", b"", r"must end in \.safetensors, \.pth or \.pt"),
        ("rubbish.safetensors", b"rubbish", "cannot be read"),
        ("rubbish.pth", b"rubbish", "cannot be read"),
    ],
)
def test_unusable_files(file, content, words, tmp_path):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(EncoderError, match=words) as error:
        make("vgg16", weights=tmp_path / file)
    assert file in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None


class Payload:
    def __reduce__(self):
        return (pytest.fail, ("code in a weights file was run",))


def test_a_file_that_wants_to_run_code_is_not_obeyed(tmp_path):
    torch.save({"features.0.weight": Payload()}, tmp_path / "evil.pth")
    with pytest.raises(EncoderError, match="cannot be read"):
        make("vgg16", weights=tmp_path / "evil.pth")
    (tmp_path / "bare.pth").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(EncoderError, match="cannot be read"):
        make("vgg16", weights=tmp_path / "bare.pth")


def test_a_checkpoint_that_is_not_a_state_dict_is_explained(tmp_path):
    torch.save({"state_dict": {"a": torch.zeros(1)}, "epoch": 3}, tmp_path / "checkpoint.pth")
    with pytest.raises(EncoderError, match=r"state_dict\(\) alone"):
        make("vgg16", weights=tmp_path / "checkpoint.pth")


class TestFolder:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
        return tmp_path

    def test_is_used_before_the_network(self, folder, conv4_1):
        save_file(conv4_1, folder / "vgg16_torchvision_conv4_1.safetensors")
        from_folder = make("vgg16")
        assert from_folder.identity.text == make("vgg16", weights=conv4_1).identity.text

    def test_one_file_by_prefix_or_the_exact_name(self, folder):
        assert find("vgg16") is None
        for file in ("vgg19.pth", "vgg161.pth", "vgg16_notes.txt", "vgg16-397923af.pth"):
            (folder / file).touch()
        assert find("vgg16") == folder / "vgg16-397923af.pth"
        (folder / "vgg16_mine.safetensors").touch()
        with pytest.raises(EncoderError, match=r"2 files for vgg16: vgg16-397923af\.pth, vgg16_mine\.safetensors"):
            find("vgg16")
        (folder / "vgg16.pt").touch()
        assert find("vgg16") == folder / "vgg16.pt"

    def test_that_is_none(self, monkeypatch, folder):
        monkeypatch.setenv(FOLDER_VARIABLE, str(folder / "nowhere"))
        with pytest.raises(EncoderError, match="not a folder"):
            find("vgg16")


class TestDownload:
    def test_takes_torchvisions_file_and_checks_it(self, monkeypatch, conv4_1):
        asked = {}

        def fake(url, **options):
            asked.update(url=url, **options)
            return conv4_1

        monkeypatch.setattr(torch.hub, "load_state_dict_from_url", fake)
        assert make("vgg16").identity.text == make("vgg16", weights=conv4_1).identity.text
        assert asked["url"] == "https://download.pytorch.org/models/vgg16-397923af.pth"
        assert asked["check_hash"] is True
        assert asked["weights_only"] is True

    @pytest.mark.parametrize(
        "fault", [urllib.error.URLError("no route to host"), RuntimeError('invalid hash value (expected "39")')]
    )
    def test_that_fails_says_which_file_goes_where(self, monkeypatch, tmp_path, fault):
        monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))

        def fail(url, **options):
            raise fault

        monkeypatch.setattr(torch.hub, "load_state_dict_from_url", fail)
        with pytest.raises(EncoderError) as error:
            make("resnet50")
        message = str(error.value)
        assert f"put resnet50-0676ba61.pth into {tmp_path / 'checkpoints'}" in message
        assert FOLDER_VARIABLE in message
        assert "no route to host" in message or "invalid hash" in message
        assert "\n" not in message
        assert error.value.__suppress_context__


def test_fit_ignores_keys_nobody_needs():
    network = nn.Linear(2, 1)
    tensors = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([3.0]), "head.weight": torch.zeros(9)}
    fit(network, Loaded(tensors, "here"), "a line")
    assert network(torch.ones(1, 2)).item() == 6.0
