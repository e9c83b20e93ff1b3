"""Networks in torch as encoders: frozen, with the hash of their weights in their identity."""

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from engram.encoders.base import EncoderError, Features, Identity, Pixels, Preprocess
from engram.paper.device import resolve_device, threads_for

# Pixels per batch. Measured: on CPUs about 100,000 (2 pictures of 224×224) keep a layer's activations in the cache; a
# GPU wants enough to be busy, and is at its full rate from about a million on.
_CPU_PIXELS, _CPU_MOST = 110_000, 64
_GPU_PIXELS, _GPU_MOST = 3_200_000, 1024


@dataclass(frozen=True)
class Network:
    """A network that makes features (n, dim) of a normalised float batch (n, 3, size, size), and what it takes.

    `name` says which network and layer, in words of one's own; with ``fold=True`` batch norms are merged into the
    convolutions, for networks that `fold_batch_norms` may be used on.
    """

    module: nn.Module
    name: str
    dim: int
    preprocess: Preprocess
    fold: bool = False


class TorchEncoder:
    """An encoder that torch runs, one's own network for instance: always in eval mode, without gradients.

    `name` is what makes it again, if that is enough. With `mirror` the features of each picture are averaged with those
    of its mirror image, for twice the work.

    >>> network = Network(nn.Conv2d(3, 4, 8), "mine", 4, Preprocess(size=8))
    >>> TorchEncoder(network, device="cpu").encode(np.zeros((2, 8, 8, 3), np.uint8)).shape
    (2, 4)
    """

    def __init__(
        self, network: Network, name: str | None = None, device: str = "auto", *, mirror: bool = False
    ) -> None:
        self.device, self.mirror = resolve_device(device), mirror
        self.dim, self.preprocess = network.dim, network.preprocess
        digest = hash_tensors(network.module.state_dict())
        text = (f"{network.name}:sha256-{digest}" if digest else network.name) + (":mirror" if mirror else "")
        self.identity = Identity(text, name)
        module = network.module.eval().requires_grad_(False)
        if network.fold:
            fold_batch_norms(module)
        # Folded and channels last, EfficientNet-Lite0 made twice the images per second on a CPU, VGG a quarter more.
        self._module = module.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._mean = torch.tensor(self.preprocess.mean, device=self.device).view(3, 1, 1)
        self._std = torch.tensor(self.preprocess.std, device=self.device).view(3, 1, 1)
        pixels, on_cpu = self.preprocess.size**2, self.device.type == "cpu"
        budget, most = (_CPU_PIXELS, _CPU_MOST) if on_cpu else (_GPU_PIXELS, _GPU_MOST)
        self.batch = max(1, min(most, budget // pixels))

    def encode(self, pictures: Pixels) -> Features:
        """Features (n, dim) of uint8 pictures (n, size, size, 3); on a CPU one thread's work."""
        if not len(pictures):
            return np.empty((0, self.dim), np.float32)
        with torch.inference_mode(), threads_for(0, self.device):
            pixels = torch.from_numpy(pictures).to(self.device).permute(0, 3, 1, 2)
            batch = pixels.to(torch.float32).div_(255).sub_(self._mean).div_(self._std)
            found: Tensor = self._module(batch).flatten(1)
            if self.mirror:
                found = (found + self._module(batch.flip(3)).flatten(1)) / 2
        if found.shape[1] != self.dim:
            raise EncoderError(
                f"{self.identity.text} made {found.shape[1]} features of {self.preprocess.size} px where {self.dim} "
                "were announced; create it with another size"
            )
        features: Features = found.float().cpu().numpy()
        return features


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


def hash_tensors(state: Mapping[str, Tensor]) -> str:
    """Hash names, shapes and bytes of the tensors, whatever file format or order they came in; "" for no tensors."""
    digest = hashlib.sha256()
    # The counter of batch norm does not touch the features, and not every file has it.
    keys = sorted(key for key in state if not key.endswith("num_batches_tracked"))
    for key in keys:
        tensor = state[key].detach().cpu()
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16] if keys else ""
