import sys
import types

import pytest
import torch
from torch import nn

from engram import backbones
from engram.backbones import Backbone, BackboneError, Preprocess, RecordedBackbone
from engram.backbones.base import fold_batch_norms


def small(name="small", **options):
    network = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
    return Backbone(network, name=name, dim=4, preprocess=Preprocess(size=8), **options)


def test_the_names():
    shipped = [name for name in backbones.names() if name != "averages"]  # a toy of the tests
    lites = ["efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"]
    assert shipped == [*lites, "identity", "resnet50", "timm:", "vgg16", "vgg19"]


@pytest.mark.parametrize("name", ["vgg", "timm", "timm:", "timm:mirror", "VGG16", "identity:", "vgg16::mirror", ""])
def test_an_unknown_name_lists_the_known(name):
    with pytest.raises(BackboneError, match=r"efficientnet_lite0, .*, identity, resnet50"):
        backbones.create(name)


def test_an_unknown_option_lists_the_known():
    with pytest.raises(BackboneError, match="no option 'layr'; it takes layer, size"):
        backbones.create("vgg16", layr="fc1")


@pytest.mark.parametrize("name", ["efficientnet_lite0:miror", "efficientnet_lite0:miror:mirror"])
def test_an_unknown_layer_lists_the_known(name):
    with pytest.raises(BackboneError, match=r"no layer 'miror'; choose one of pooled, joined, logits .* :mirror"):
        backbones.create(name)


def test_a_name_may_say_the_layer():
    assert backbones.create("efficientnet_lite0:logits").identity.startswith("efficientnet_lite0:logits@224:")
    with pytest.raises(BackboneError, match="resnet50:joined says layer already"):
        backbones.create("resnet50:joined", layer="pooled")


def test_mirrored_pictures_are_averaged_in():
    plain, mirrored = (backbones.create("efficientnet_lite0:joined", mirror=mirror) for mirror in (False, True))
    batch = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    left, right = plain(batch), plain(batch.flip(3))
    assert (left - right).norm() / left.norm() > 0.1
    assert torch.equal(mirrored(batch), (left + right) / 2)
    assert mirrored.identity == f"{plain.identity}:mirror"
    with pytest.raises(BackboneError, match="no mirror image"):
        backbones.create("identity", mirror=True)


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("efficientnet_lite0", "efficientnet_lite0:pooled@224:sha256-034544d50c246d59"),
        ("efficientnet_lite0:joined", "efficientnet_lite0:joined@224:sha256-034544d50c246d59"),
        ("efficientnet_lite0:joined:mirror", "efficientnet_lite0:joined@224:sha256-034544d50c246d59:mirror"),
    ],
)
def test_a_recorded_name_means_the_same_features_forever(name, identity):
    recorded = RecordedBackbone.from_json({"name": name, "identity": identity}, given=None)
    assert recorded.network().identity == identity
    assert recorded.as_json() == RecordedBackbone(name).as_json()
    with pytest.raises(ValueError, match="taught with"):
        RecordedBackbone.from_json({"name": name, "identity": identity}, given="efficientnet_lite0:mirror")


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="registered already"):
        backbones.register("vgg16")(lambda weights: None)


def test_frozen():
    backbone = backbones.create("efficientnet_lite0")
    assert not any(parameter.requires_grad for parameter in backbone.parameters())
    backbone.train()
    assert not any(module.training for module in backbone.modules())
    batch = torch.zeros(1, 3, 64, 64, requires_grad=True)
    features = backbone(batch)
    assert not features.requires_grad
    # Features are ordinary tensors: a learner may train on them.
    weight = torch.ones(1280, requires_grad=True)
    (features @ weight).sum().backward()
    assert weight.grad is not None


def test_folding_batch_norms_changes_nothing_but_the_speed():
    torch.manual_seed(0)
    plain = small()
    norm = plain.network[1]
    for tensor in (norm.running_mean, norm.running_var, norm.weight.data, norm.bias.data):
        tensor.uniform_(0.5, 2)
    batch = torch.randn(2, 3, 8, 8)
    expected = plain(batch)
    fold_batch_norms(plain.network)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in plain.modules())
    torch.testing.assert_close(plain(batch), expected)


def test_folding_does_not_move_the_identity():
    torch.manual_seed(0)
    plain = small()
    torch.manual_seed(0)
    assert small(fold=True).identity == plain.identity


@pytest.mark.parametrize(
    "batch", [torch.zeros(1, 3, 8, 8, dtype=torch.uint8), torch.zeros(3, 8, 8), torch.zeros(1, 1, 8, 8)]
)
def test_anything_but_a_normalised_batch_is_refused(batch):
    with pytest.raises(BackboneError, match="normalised float batch"):
        small()(batch)


def test_pictures_of_a_size_that_was_not_announced_are_refused():
    network = nn.Conv2d(3, 1, 1)
    backbone = Backbone(network, name="pixels", dim=64, preprocess=Preprocess(size=8))
    assert backbone(torch.zeros(2, 3, 8, 8)).shape == (2, 64)
    with pytest.raises(BackboneError, match="feed 8 px"):
        backbone(torch.zeros(2, 3, 9, 9))


def test_identity_passes_vectors():
    vectors = torch.randn(3, 5)
    backbone = backbones.create("identity")
    assert backbone.dim is None
    assert torch.equal(backbone(vectors), vectors)
    assert backbone.identity == "identity"
    assert backbones.create("identity", dim=5).identity == "identity@5"
    for wrong in (torch.zeros(3, 4), torch.zeros(3, 5, dtype=torch.long), torch.zeros(5)):
        with pytest.raises(BackboneError, match=r"\(N, 5\)"):
            backbones.create("identity", dim=5)(wrong)
    with pytest.raises(BackboneError, match="no weights"):
        backbones.create("identity", weights="file.pth")


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
        backbone = backbones.create("timm:resnet18")
        assert timm.made == [("resnet18", True, 0)]
        assert backbone.dim == 6
        assert backbone.identity.startswith("timm:resnet18@32:sha256-")
        assert backbone.preprocess == Preprocess(
            size=32, resize_to=36, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7), interpolation="bicubic"
        )
        assert backbone(torch.zeros(2, 3, 32, 32)).shape == (2, 6)
        assert not backbone.network.training

    def test_mirrored(self, timm):
        plain, mirrored = (backbones.create(name) for name in ("timm:resnet18", "timm:resnet18:mirror"))
        assert mirrored.identity == f"{plain.identity}:mirror"

    def test_squash_means_stretch(self, timm):
        timm.config |= {"crop_mode": "squash", "crop_pct": 1.0}
        assert backbones.create("timm:resnet18", size=48).preprocess.describe()["resize"] == "exact"

    def test_weights_from_a_file(self, timm):
        state = {"0.weight": torch.ones(6, 3, 3, 3), "0.bias": torch.zeros(6)}
        state |= {f"1.{key}": torch.ones(6) for key in ("weight", "bias", "running_mean", "running_var")}
        backbone = backbones.create("timm:resnet18", weights=state)
        assert timm.made == [("resnet18", False, 0)]
        assert torch.equal(backbone.network[0].weight, state["0.weight"])

    def test_an_unknown_model_is_one_clear_error(self, timm):
        with pytest.raises(BackboneError, match=r"Unknown model \(nonesuch\)"):
            backbones.create("timm:nonesuch")

    def test_without_timm_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "timm", None)
        with pytest.raises(BackboneError, match=r"pip install 'engram-learn\[timm\]'") as error:
            backbones.create("timm:resnet18")
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
            recorded = backbones.RecordedBackbone.from_json({"name": name, "identity": "x"}, None)
            with pytest.raises(BackboneError, match=r"timm:\S+, which timm would have to fetch; .* --allow-download"):
                recorded.network()
        assert asked == []
        given = "timm:resnet18"  # whoever names it in Python means it
        with pytest.raises(BackboneError, match="timm cannot make"):
            backbones.RecordedBackbone.from_json({"name": None, "identity": "x"}, given)
        monkeypatch.setenv("ENGRAM_ALLOW_DOWNLOAD", "1")
        with pytest.raises(BackboneError, match="timm cannot make"):
            backbones.RecordedBackbone.from_json({"name": given, "identity": "x"}, None).network()
        assert asked == ["resnet18"] * 2

    def test_torchvisions_files_are_used_if_they_are_here(self, monkeypatch, tmp_path):
        monkeypatch.delenv("ENGRAM_WEIGHTS", raising=False)
        monkeypatch.setattr("torch.hub.get_dir", lambda: str(tmp_path))
        loaded = []

        def load(url, **options):
            loaded.append(url)
            raise OSError("no network in tests")

        monkeypatch.setattr("torch.hub.load_state_dict_from_url", load)
        recorded = backbones.RecordedBackbone.from_json({"name": "vgg16", "identity": "x"}, None)
        with pytest.raises(BackboneError, match=r"names the backbone vgg16, which \S+ would have to fetch"):
            recorded.network()
        assert loaded == []
        with pytest.raises(BackboneError, match="no network in tests"):
            backbones.create("vgg16")  # typed by somebody
        (tmp_path / "checkpoints").mkdir()
        (tmp_path / "checkpoints" / loaded[0].rpartition("/")[2]).write_bytes(b"")
        with pytest.raises(BackboneError, match="no network in tests"):
            recorded.network()  # here: torch.hub is asked, and reads it
        assert len(loaded) == 2
