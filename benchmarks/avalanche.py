"""Learning one class more, against Avalanche's MAS and SI strategies on the same network and the same features.

    python benchmarks/avalanche.py --device cpu --json avalanche.json

Needs avalanche-lib (0.6.0) beside engram. Both train the CIFAR-100 autoencoder's encoder, the decoder fixed, with the
same loss, batch size, epochs and AMSGrad, on a class that comes after a first one, so that the penalty is active. A
class's time is everything either does to learn it, its importance included. Where torchvision's compiled operators do
not load beside a CPU build of torch, name a module to import first: `--before MODULE`.
"""

import importlib
import statistics
import sys
import time
from pathlib import Path

import torch
from table import parser, row, show
from torch.utils.data import TensorDataset

from engram.paper import losses
from engram.paper.autoencoder import Autoencoder
from engram.paper.device import resolve_device
from engram.paper.engine import fast
from engram.paper.prototypes import Prototypes, PrototypesConfig

sys.path = [
    entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent
]  # we share its name

FEATURES, LAYERS, BATCH = 8192, (2048, 2048), 64


def features_of(number, samples):
    generator = torch.Generator().manual_seed(number)
    return torch.rand(samples, FEATURES, generator=generator) * 0.2


def engram_seconds(rule, device, samples, epochs, classes):
    """Of one class after the other; the base and the class that compiles and captures are not among them."""
    config = PrototypesConfig(
        layers=LAYERS, consolidation=rule, feature_rms=None, base_epochs=1, increment_epochs=epochs, batch_size=BATCH
    )
    learner = Prototypes(config, device=str(device))
    for number in range(classes + 2):
        X = features_of(number, samples).to(device)
        start = time.perf_counter()
        learner.learn(X, [number] * samples)
        if device.type == "cuda":
            torch.cuda.synchronize()
        if number > 1:
            yield time.perf_counter() - start


def avalanche_seconds(rule, device, samples, epochs, classes):
    """Of one class after the other, after a first."""
    from avalanche.benchmarks.scenarios.dataset_scenario import benchmark_from_datasets
    from avalanche.benchmarks.utils import as_classification_dataset
    from avalanche.training.plugins import MASPlugin, SynapticIntelligencePlugin
    from avalanche.training.templates import SupervisedTemplate

    class Network(Autoencoder):
        def forward(self, x):
            self.codes = self.encode(x)
            return self.decode(self.codes)

    class Strategy(SupervisedTemplate):
        def criterion(self):
            return losses.reconstruction(self.mb_output, self.mb_x) + 1e-3 * losses.sparsity(self.model.codes)

    network = Network(FEATURES, LAYERS).initialise(torch.Generator().manual_seed(0)).to(device)
    network.decoder.requires_grad_(False)
    plugin = MASPlugin(lambda_reg=10, alpha=0.5) if rule == "mas" else SynapticIntelligencePlugin(si_lambda=10)
    strategy = Strategy(
        model=network,
        optimizer=torch.optim.Adam(network.encoder.parameters(), 2e-4, amsgrad=True),
        train_mb_size=BATCH,
        train_epochs=epochs,
        device=device,
        plugins=[plugin],
        evaluator=None,
    )
    data = []
    for number in range(classes + 1):
        dataset = TensorDataset(features_of(number, samples), torch.full((samples,), number))
        dataset.targets = [number] * samples
        data.append(as_classification_dataset(dataset))
    for number, experience in enumerate(benchmark_from_datasets(train=data).train_stream):
        start = time.perf_counter()
        strategy.train(experience, shuffle=True)
        if device.type == "cuda":
            torch.cuda.synchronize()
        if number:
            yield time.perf_counter() - start


def main():
    options = parser(__doc__)
    options.add_argument("--before", help="module to import before avalanche")
    options.add_argument("--samples", type=int, default=256)
    options.add_argument("--epochs", type=int, default=2)
    options.add_argument("--classes", type=int, default=3, help="timed, after those that warm up")
    options.add_argument("--rule", choices=("mas", "si"), help="one of the two only")
    options.add_argument("--tf32", action="store_true", help="faster, less exact matrix products on a GPU, for both")
    options = options.parse_args()
    if options.before:
        importlib.import_module(options.before)
    device = resolve_device(options.device)
    if options.tf32:
        torch.set_float32_matmul_precision("high")
    fast.WORTH_COMPILING = 0  # a user's classes have 50 epochs; here two must do
    steps = options.epochs * -(-options.samples // BATCH)
    rows = []
    for rule in (options.rule,) if options.rule else ("mas", "si"):
        work = rule, device, options.samples, options.epochs, options.classes
        # In turns, class by class: a machine's speed drifts by more than the two differ from run to run.
        turns = list(zip(engram_seconds(*work), avalanche_seconds(*work), strict=True))
        mine, theirs = (statistics.median(seconds) for seconds in zip(*turns, strict=True))
        ratio = statistics.median(theirs / mine for mine, theirs in turns)
        rows += [
            row(f"{rule.upper()}: engram, per step", mine / steps * 1e3, "ms"),
            row(f"{rule.upper()}: Avalanche, per step", theirs / steps * 1e3, "ms"),
            row(f"{rule.upper()}: Avalanche / engram", ratio, "ratio", "" if device.type == "cuda" else ">= 4"),
        ]
    show(rows, device, options.json, tf32=options.tf32)


if __name__ == "__main__":
    main()
