"""The frozen extractor φ: a network, what it asks of pictures, and the text that says exactly which one it is."""

import hashlib
import itertools
from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from engram.backbones.preprocess import Preprocess


class BackboneError(ValueError):
    """A backbone that cannot be made or used as asked; the message says why and what to do."""


class Backbone(nn.Module):
    """A frozen network: always in eval mode, without gradients, features (N, dim) out.

    ``fold=True`` merges batch norms into the convolutions, for networks that :func:`fold_batch_norms` may be used on.

    Attributes
    ----------
    dim : length of a feature vector; None where it is whatever comes in (the ``identity`` backbone without a `dim`).
    preprocess : how a picture becomes the network's input, see :class:`~engram.backbones.Preprocess`.
    identity : name, layer, input size, a hash of the weights in use, and whether mirrored pictures are averaged in. Two
        backbones with the same identity and the same preprocessing give the same features, so it goes into model files
        and cache keys.
    """

    def __init__(
        self, network: nn.Module, *, name: str, dim: int | None, preprocess: Preprocess, fold: bool = False
    ) -> None:
        super().__init__()
        self.dim = dim
        self.preprocess = preprocess
        self.created_as: str | None = None  # the name that makes it again, where there is one
        digest = weights_hash(network.state_dict())
        self.identity = f"{name}:sha256-{digest}" if digest else name
        network.eval().requires_grad_(False)
        if fold:
            fold_batch_norms(network)
        # Folded and channels last, EfficientNet-Lite0 makes twice the images per second on a CPU, VGG a quarter more.
        for parameter in network.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
        self.network = network

    def forward(self, batch: Tensor) -> Tensor:
        """Extract features (N, dim) from a normalised float batch (N, 3, H, W)."""
        if batch.ndim != 4 or batch.shape[1] != 3 or not batch.is_floating_point():
            raise BackboneError(
                f"{self.identity} takes a normalised float batch (N, 3, H, W), got {batch.dtype} {tuple(batch.shape)}; "
                "backbone.preprocess makes one"
            )
        with torch.no_grad():  # not inference_mode: its tensors may not enter a learner's training later
            features: Tensor = self.network(batch).flatten(1)
        if features.shape[1] != self.dim:
            raise BackboneError(
                f"{self.identity} made {features.shape[1]} features of {batch.shape[2]}×{batch.shape[3]} pixels where "
                f"{self.dim} were announced; feed {self.preprocess.size} px, or create the backbone with another size"
            )
        return features

    def average_mirrored(self) -> None:
        """From now on, average the features of each picture with those of its mirror image, which doubles the work."""
        self.network = _MirrorAverage(self.network)
        self.identity += ":mirror"

    def train(self, mode: bool = True) -> Self:
        """Stay in eval mode: a frozen network's batch-norm statistics must not move with a learner's ``train()``."""
        return super().train(False)


class Identity(Backbone):
    """The backbone of those who bring feature vectors: floating (N, dim) passes through untouched."""

    def __init__(self, dim: int | None = None) -> None:
        preprocess = Preprocess(size=None, resize="native", mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
        name = "identity" if dim is None else f"identity@{dim}"
        super().__init__(nn.Identity(), name=name, dim=dim, preprocess=preprocess)

    def forward(self, batch: Tensor) -> Tensor:
        """Return the batch (N, dim) as it is."""
        if batch.ndim != 2 or not batch.is_floating_point() or self.dim not in (None, batch.shape[1]):
            width = "dim" if self.dim is None else self.dim
            raise BackboneError(
                f"{self.identity} takes float feature vectors (N, {width}), got {batch.dtype} {tuple(batch.shape)}"
            )
        return batch.detach()

    def average_mirrored(self) -> None:
        """Refuse: feature vectors have no mirror image."""
        raise BackboneError("the identity backbone takes feature vectors, which have no mirror image; leave mirror out")


class _MirrorAverage(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Tensor) -> Tensor:
        average: Tensor = (self.network(batch) + self.network(batch.flip(3))) / 2
        return average


def fold_batch_norms(network: nn.Module) -> None:
    """Merge every batch norm into the convolution registered right before it, in place.

    Only for networks that also *run* them in the order of registration, as those of this package do.
    """
    for module in list(network.modules()):
        children = list(module.named_children())
        for (conv_name, conv), (norm_name, norm) in itertools.pairwise(children):
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                setattr(module, conv_name, fuse_conv_bn_eval(conv, norm))
                setattr(module, norm_name, nn.Identity())


def weights_hash(state: Mapping[str, Tensor]) -> str:
    """Hash names, shapes and bytes of the tensors, whatever file format or order they came in; "" for no tensors."""
    digest = hashlib.sha256()
    # The counter of batch norm does not touch the features, and not every file has it.
    keys = sorted(key for key in state if not key.endswith("num_batches_tracked"))
    for key in keys:
        tensor = state[key].detach().cpu()
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16] if keys else ""
