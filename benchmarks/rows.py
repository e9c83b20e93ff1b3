"""Every row of the ledger: which preset, on which features, with how many class orders and initialisations.

`benchmarks/reproduce.py` runs them; a results file holds the rows listed under its name. Rows of one file share their
features, so that they share α_ideal.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Features:
    """Where the features of some rows come from."""

    dataset: str
    backbone: str
    weights: str  # a file in the folder of weights
    tf32: bool = False


FEATURES = {
    "cifar100-vgg16": Features("cifar100", "vgg16", "vgg16_torchvision_conv4_1.safetensors", tf32=True),
    "cifar100-vgg19": Features("cifar100", "vgg19", "vgg19_oxford_conv4_1.safetensors", tf32=True),
    "cifar100-resnet50": Features("cifar100", "resnet50", "resnet50_msra.safetensors", tf32=True),
    "cifar100-joined": Features("cifar100", "resnet50:joined:mirror", "resnet50_msra.safetensors"),
    "cub200-resnet50": Features("cub200", "resnet50", "resnet50_msra.safetensors", tf32=True),
    "cub200-joined": Features("cub200", "resnet50:joined:mirror", "resnet50_msra.safetensors"),
}


@dataclass(frozen=True)
class Row:
    """One row: a preset of `engram bench`, perhaps changed, and how often it is run."""

    preset: str
    features: str  # a key of FEATURES
    settings: tuple[str, ...] = ()  # like "lambda_reg=0", as --set takes them
    name: str = ""  # of a row that settings make another one, such as "frozen encoder"
    orders: int = 5
    seeds: int = 2  # initialisations for every class order; 1 where nothing is drawn at random
    base: int | None = None  # classes in the base task; None: half of them
