import sys
import types

import numpy as np
import pytest
import torch
from seeing import random_pictures, see
from torch import nn

from engram.backbones.base import Network, TorchEncoder
from engram.backbones.registry import make
from engram.encoders import registry
from engram.encoders.base import EncoderError, Preprocess
from engram.encoders.recorded import RecordedEncoder


def small(**options):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
    for tensor in (module[1].running_mean, module[1].running_var, module[1].weight.data, module[1].bias.data):
        tensor.uniform_(0.5, 2)
    return Network(module, "small", 4, Preprocess(size=8), **options)


def test_the_product_finds_them_by_name():
    assert {"resnet50", "timm", "vgg16", "vgg19"} <= set(registry.names())
    with pytest.raises(EncoderError, match=r"no layer 'miror'; choose one of conv4_1, fc1 .* :mirror"):
        registry.create("vgg16:miror")


@pytest.mark.parametrize("name", ["vgg", "timm", "timm:", "timm:mirror", "VGG16", "vgg16::mirror", ""])
def test_an_unknown_name_lists_the_known(name):
    with pytest.raises(EncoderError, match=r"resnet50, .*vgg16"):
        registry.create(name)


def test_an_unknown_option_lists_the_known():
    with pytest.raises(EncoderError, match="no option 'layr'; it takes weights, layer, size"):
        make("vgg16", layr="fc1")
    with pytest.raises(EncoderError, match="resnet50:joined says layer already"):
        make("resnet50:joined", layer="pooled")


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "engram.backbones.registry")
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("engram.backbones")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EncoderError, match=r"engram-learn\[torch\]"):
        registry.create("resnet50")


def test_mirrored_pictures_are_averaged_in():
    plain, mirrored = TorchEncoder(small()), TorchEncoder(small(), mirror=True)
    pictures = random_pictures(5, 8)
    left, right = see(plain, pictures), see(plain, np.ascontiguousarray(pictures[:, :, ::-1]))
    assert not torch.allclose(left, right)
    torch.testing.assert_close(see(mirrored, pictures), (left + right) / 2)
    assert mirrored.identity.text == f"{plain.identity.text}:mirror"


def test_pieces_give_the_whole_and_nothing_gives_nothing():
    encoder, pictures = TorchEncoder(small()), random_pictures(7, 8)
    parts = [encoder.encode(part) for part in (pictures[:3], pictures[3:], pictures[:0])]
    np.testing.assert_allclose(np.concatenate(parts), encoder.encode(pictures), rtol=1e-5)


def test_folding_batch_norms_changes_neither_features_nor_identity():
    plain, folded = TorchEncoder(small()), TorchEncoder(small(fold=True))
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded._module.modules())
    torch.testing.assert_close(see(folded, random_pictures(5, 8)), see(plain, random_pictures(5, 8)))
    assert plain.identity == folded.identity


def test_a_width_that_was_not_announced_is_refused():
    encoder = TorchEncoder(Network(nn.Conv2d(3, 1, 1), "pixels", 63, Preprocess(size=8)))
    with pytest.raises(EncoderError, match="made 64 features of 8 px where 63 were announced"):
        encoder.encode(random_pictures(2, 8))


def test_it_stands_still():
    network = small()
    encoder = TorchEncoder(network)
    assert not network.module.training
    assert not any(parameter.requires_grad for parameter in network.module.parameters())
    assert encoder.encode(random_pictures(2, 8)).dtype == np.float32


class TestTimm:
    """timm is optional and heavy; a stand-in shows that it is called as its documentation says."""

    CONFIG = {  # noqa: RUF012
        "input_size": (3, 32, 32),
        "interpolation": "bicubic",
        "mean": (0.1, 0.2, 0.3),
        "std": (0.5, 0.6, 0.7),
        "crop_pct": 0.875,
        "crop_mode": "center",
    }

    @pytest.fixture
    def timm(self, monkeypatch):
        module, data = types.ModuleType("timm"), types.ModuleType("timm.data")
        module.made = []
        module.config = dict(self.CONFIG)

        def create_model(name, pretrained, num_classes):
            if name != "resnet18":
                raise RuntimeError(f"Unknown model ({name})")
            module.made.append((name, pretrained, num_classes))
            torch.manual_seed(0)
            return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.AdaptiveAvgPool2d(1), nn.Flatten())

        module.create_model = create_model
        data.resolve_model_data_config = lambda model: module.config
        monkeypatch.setitem(sys.modules, "timm", module)
        monkeypatch.setitem(sys.modules, "timm.data", data)
        return module

    def test_pretrained_and_headless(self, timm):
        backbone = make("timm:resnet18")
        assert timm.made == [("resnet18", True, 0)]
        assert backbone.dim == 6
        assert backbone.identity.text.startswith("timm:resnet18@32:sha256-")
        assert backbone.preprocess == Preprocess(
            size=32, resize_to=36, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7), interpolation="bicubic"
        )
        assert backbone.encode(random_pictures(2, 32)).shape == (2, 6)

    def test_mirrored(self, timm):
        plain, mirrored = (make(name) for name in ("timm:resnet18", "timm:resnet18:mirror"))
        assert mirrored.identity.text == f"{plain.identity.text}:mirror"

    def test_squash_means_stretch(self, timm):
        timm.config |= {"crop_mode": "squash", "crop_pct": 1.0}
        assert make("timm:resnet18", size=48).preprocess.describe()["resize"] == "exact"

    def test_weights_from_a_file(self, timm):
        state = {"0.weight": torch.ones(6, 3, 3, 3), "0.bias": torch.zeros(6)}
        state |= {f"1.{key}": torch.ones(6) for key in ("weight", "bias", "running_mean", "running_var")}
        backbone = make("timm:resnet18", weights=state)
        assert timm.made == [("resnet18", False, 0)]
        assert torch.equal(backbone._module[0].weight, state["0.weight"])

    def test_an_unknown_model_is_one_clear_error(self, timm):
        with pytest.raises(EncoderError, match=r"Unknown model \(nonesuch\)"):
            make("timm:nonesuch")

    def test_without_timm_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "timm", None)
        with pytest.raises(EncoderError, match=r"pip install 'engram-learn\[timm\]'") as error:
            make("timm:resnet18")
        assert "\n" not in str(error.value)


class TestNamedByAModelFile:
    """Nothing is fetched for a file; what is here is used."""

    def test_timm_is_not_asked(self, monkeypatch):
        asked = []
        module, data = types.ModuleType("timm"), types.ModuleType("timm.data")

        def create_model(name, **options):
            asked.append(name)
            raise OSError("no network in tests")

        module.create_model = create_model
        data.resolve_model_data_config = None
        monkeypatch.setitem(sys.modules, "timm", module)
        monkeypatch.setitem(sys.modules, "timm.data", data)
        for name in ("timm:hf-hub:somebody/something", "timm:resnet18", "timm:resnet18:mirror"):
            recorded = RecordedEncoder("x", name)
            with pytest.raises(EncoderError, match=r"timm:\S+, which timm would have to fetch; .* --allow-download"):
                recorded.open()
        assert asked == []
        given = "timm:resnet18"  # whoever names it in Python means it
        with pytest.raises(EncoderError, match="timm cannot make"):
            make(given)
        monkeypatch.setenv("ENGRAM_ALLOW_DOWNLOAD", "1")
        with pytest.raises(EncoderError, match="timm cannot make"):
            RecordedEncoder("x", given).open()
        assert asked == ["resnet18"] * 2

    def test_torchvisions_files_are_used_if_they_are_here(self, monkeypatch, tmp_path):
        monkeypatch.delenv("ENGRAM_WEIGHTS", raising=False)
        monkeypatch.setattr("torch.hub.get_dir", lambda: str(tmp_path))
        loaded = []

        def load(url, **options):
            loaded.append(url)
            raise OSError("no network in tests")

        monkeypatch.setattr("torch.hub.load_state_dict_from_url", load)
        recorded = RecordedEncoder("x", "vgg16")
        with pytest.raises(EncoderError, match=r"names the encoder vgg16, which \S+ would have to fetch"):
            recorded.open()
        assert loaded == []
        with pytest.raises(EncoderError, match="no network in tests"):
            make("vgg16")  # typed by somebody
        (tmp_path / "checkpoints").mkdir()
        (tmp_path / "checkpoints" / loaded[0].rpartition("/")[2]).write_bytes(b"")
        with pytest.raises(EncoderError, match="no network in tests"):
            recorded.open()  # here: torch.hub is asked, and reads it
        assert len(loaded) == 2
