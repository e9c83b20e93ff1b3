"""What the paper published: Choi, Lee, Choi (2019), "Autoencoder-Based Incremental Class Learning without Retraining on
Old Data". Plain data, to be put beside what is measured. 1-NN, GeppNet, iCaRL and FearNet are quoted there from Kemker
and Kanan's FearNet paper, on ResNet-50 features.
"""

NAMES = {
    "1nn": "1-NN",
    "geppnet": "GeppNet",
    "icarl": "iCaRL",
    "fearnet": "FearNet",
    "mas": "MAS",
    "si": "SI",
    "mas-lof": "MAS+LOF",
    "si-lof": "SI+LOF",
}

# The paper's own four; the others are the systems it compares with.
OWN = ("mas", "si", "mas-lof", "si-lof")

# Ψ_base, Ψ_new, Ψ_all
PSI: dict[str, dict[str, tuple[float, float, float]]] = {
    "cifar100": {
        "1nn": (0.878, 0.648, 0.879),
        "geppnet": (0.833, 0.529, 0.754),
        "icarl": (0.746, 0.807, 0.749),
        "fearnet": (0.927, 0.824, 0.947),
        "mas": (0.887, 0.641, 0.850),
        "si": (0.864, 0.618, 0.857),
        "mas-lof": (0.859, 0.746, 0.823),
        "si-lof": (0.833, 0.697, 0.814),
    },
    "cub200": {
        "1nn": (0.746, 0.434, 0.694),
        "geppnet": (0.727, 0.558, 0.645),
        "icarl": (0.942, 0.547, 0.864),
        "fearnet": (0.924, 0.598, 0.891),
        "mas": (0.837, 0.672, 0.769),
        "si": (0.824, 0.726, 0.762),
        "mas-lof": (0.836, 0.780, 0.727),
        "si-lof": (0.813, 0.639, 0.737),
    },
}

# α_ideal: FearNet's offline network on ResNet-50 features, not on the VGG features the paper's own rows use.
IDEAL = {"cifar100": 0.699, "cub200": 0.598}

# Bytes kept beside the network's weights, by number of classes. Of its own method the paper counts the means alone.
MEMORY: dict[str, dict[int, float]] = {
    "1nn": {100: 4.1e9, 1000: 40.9e9},
    "geppnet": {100: 4.1e9, 1000: 41e9},
    "icarl": {100: 24.8e6, 1000: 247.8e6},
    "fearnet": {100: 3.3e6, 1000: 18e6},
    **{method: {100: 0.8e6, 1000: 8.2e6} for method in OWN},
}

# What these figures can be inferred from, in words, with the bytes of a class and those of all: none of it is in the
# paper. None where many sizes would give them.
MEMORY_FORMULAS: dict[str, tuple[str, tuple[int, int] | None]] = {
    "1nn": (
        "5,000 samples of 2,048 numbers in 4 B for each class, and 40.96 cut off; CIFAR-100 has 500, a tenth of it",
        (5000 * 2048 * 4, 0),
    ),
    "geppnet": (
        "the samples of 1-NN, a map of 23² × 2,048 numbers, and a read-out of 23² for each class",
        (5000 * 2048 * 4 + 23**2 * 4, 23**2 * 2048 * 4),
    ),
    "icarl": (
        "20 pictures of 32 × 32 × 3 numbers in 4 B for each class and 2,048 B more, perhaps a mean of 512 numbers",
        (20 * 32 * 32 * 3 * 4 + 512 * 4, 0),
    ),
    "fearnet": (
        "not inferred; the two leave 16.3 kB for each class, near a mean and a covariance of 64 numbers (16.6 kB), and "
        "1.7 MB for all, of which nothing is known",
        None,
    ),
    **dict.fromkeys(OWN, ("a mean of 2,048 numbers in 4 B for each class", (2048 * 4, 0))),
}
