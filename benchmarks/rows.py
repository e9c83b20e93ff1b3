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


FEATURES = {
    "cifar100-vgg16": Features("cifar100", "vgg16", "vgg16_torchvision_conv4_1.safetensors"),
    "cifar100-vgg19": Features("cifar100", "vgg19", "vgg19_oxford_conv4_1.safetensors"),
    "cifar100-resnet50": Features("cifar100", "resnet50", "resnet50_msra.safetensors"),
    "cifar100-joined": Features("cifar100", "resnet50:joined:mirror", "resnet50_msra.safetensors"),
    "cub200-resnet50": Features("cub200", "resnet50", "resnet50_msra.safetensors"),
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
    projections: int | None = None  # instead of the features the method is given so many random projections of them
    first: int = 0  # the first of the class orders


PAPER = ("mas", "si", "mas-lof", "si-lof")
# With how many initialisations for every class order: one where nothing is drawn at random, and where it takes long.
PEERS = dict.fromkeys(("1nn", "ncm", "slda", "fecam"), 1)
PEERS |= dict.fromkeys(("deepncm", "icarl", "ewc", "lwf", "hat", "geppnet", "finetune"), 2)
PEERS |= dict.fromkeys(("fearnet", "fearnet-head", "gem", "gan-replay", "icwgan", "joint", "ranpac"), 1)
# Given other settings by the wider trials, after the others had been run: in files of their own.
RETUNED: dict[str, tuple[str, ...]] = {
    "cifar100": ("deepncm", "gan-replay", "gem", "lwf", "fearnet", "icwgan"),
    "cub200": (),
}


def peers(dataset: str) -> dict[str, list[Row]]:
    """Other systems, and both bounds, on ResNet-50's features, by file.

    RanPAC is by itself, too: its 10,000 random features take more memory than all others together.
    """
    files: dict[str, list[Row]] = {f"{dataset}-peers": []}
    for method, times in PEERS.items():
        alone = method in ("ranpac", *RETUNED[dataset])
        file = f"{dataset}-{method if alone else 'peers'}"
        files.setdefault(file, []).append(Row(f"{dataset}-{method}", f"{dataset}-resnet50", seeds=times))
    return files


def paper(features: str, orders: int, seeds: int) -> list[Row]:
    """The paper's four."""
    return [Row(f"{features.split('-')[0]}-{method}", features, orders=orders, seeds=seeds) for method in PAPER]


def whitened(features: str, *presets: str) -> list[Row]:
    """The second method."""
    return [Row(f"{features.split('-')[0]}-{preset}", features, seeds=1) for preset in presets]


def ten_orders(features: str, orders: dict[str, int]) -> dict[str, list[Row]]:
    """One file for every method, up to the tenth class order; from which one on is given."""
    return {
        f"{features}-{method}": [
            Row(f"{features.split('-')[0]}-{method}", features, orders=10 - first, seeds=1, first=first)
        ]
        for method, first in orders.items()
    }


# The paper's four on class orders that chose nothing, those of before aside, and on VGG-19's features whom the paper
# compares them with. Every file has the predictions, for tests between methods.
FOUR = dict.fromkeys(PAPER, 3)
TEN_ORDERS = {
    **ten_orders("cifar100-vgg19", FOUR | dict.fromkeys(("whitened", "slda", "ncm", "1nn", "icarl"), 0)),
    **ten_orders("cifar100-vgg16", FOUR),
    **ten_orders("cifar100-vgg19", {"fearnet": 3}),
}

LEDGER = {
    "cub200-resnet50": paper("cub200-resnet50", 5, 2),
    "cub200-whitened": whitened("cub200-resnet50", "whitened", "whitened-recency"),
    **peers("cub200"),
    "cub200-joined": whitened("cub200-joined", "whitened"),
    "cifar100-resnet50": paper("cifar100-resnet50", 5, 2),
    "cifar100-whitened": whitened("cifar100-resnet50", "whitened", "whitened-recency"),
    **peers("cifar100"),
    "cifar100-joined": whitened("cifar100-joined", "whitened"),
    "cifar100-vgg16": [
        *paper("cifar100-vgg16", 3, 1),
        Row("cifar100-whitened-encoder", "cifar100-vgg16", orders=3, seeds=1),
    ],
    "cifar100-vgg19": paper("cifar100-vgg19", 3, 1),
    **TEN_ORDERS,
}
