"""Made-up pictures, and what a network is to see of them."""

import numpy as np
import torch

from engram.encoders.base import IMAGENET_MEAN, IMAGENET_STD


def random_pictures(n, size):
    return np.random.default_rng(1).integers(0, 256, (n, size, size, 3), dtype=np.uint8)


def normalised(pictures):
    """Written out: channels first, each less its mean and over its spread."""
    mean, std = (torch.tensor(part).view(1, 3, 1, 1) for part in (IMAGENET_MEAN, IMAGENET_STD))
    return (torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255 - mean) / std


def see(encoder, pictures):
    return torch.from_numpy(encoder.encode(pictures))
