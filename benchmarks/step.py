"""One training step against the floor of memory traffic, and against the plain engine, CIFAR-100 sizes.

    python benchmarks/step.py --device cuda --json step.json
    python benchmarks/step.py --device cpu --phase increment --json step.json

The floor counts every parameter-sized tensor that has to be read or written at least once, nothing kept in caches from
one pass to the next, and divides by the bandwidth of a large copy measured in the same run. See docs/performance.md.
"""

import statistics
import time
from itertools import pairwise

import torch
from table import parser, row, show

from engram.paper.autoencoder import Autoencoder
from engram.paper.device import resolve_device
from engram.paper.engine import FAST, PLAIN, fast
from engram.paper.prototypes import Prototypes, PrototypesConfig

FEATURES, LAYERS, BATCH = 8192, (2048, 2048), 64


def synchronise(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def bandwidth(device):
    """Bytes per second of a copy, reading and writing counted."""
    source = torch.zeros(2**28 if device.type == "cuda" else 2**26, device=device)
    target = torch.zeros_like(source)
    best = float("inf")
    for _ in range(5):
        synchronise(device)
        start = time.perf_counter()
        target.copy_(source)
        synchronise(device)
        best = min(best, time.perf_counter() - start)
    return 2 * source.numel() * 4 / best


def floor_bytes(network, phase):
    """What one step has to move at least."""
    encoder = sum(theta.numel() for theta in network.encoder.parameters())
    decoder = sum(theta.numel() for theta in network.decoder.parameters())
    first, last = network.encoder[0].weight.numel(), network.decoder[-1].weight
    trained = encoder + decoder if phase == "base" else encoder
    forward = encoder + decoder
    backward = encoder - first + decoder + trained  # weights read for the gradient of each layer's input; gradients out
    if phase == "increment":  # in place of the decoder's last weight W, twice, WᵀW once (engram/paper/engine/layers.py)
        forward, backward = forward - last.numel() + last.shape[1] ** 2, backward - last.numel()
    update = 9 * trained + 2 * encoder  # θ, two moments and the largest: in and out; the gradient in; trace in and out
    held = 0 if phase == "base" else 2 * encoder  # Ω and θ̃ in
    return 4 * (forward + backward + update + held)


def seconds_per_step(engine, phase, rule, device, steps, rounds):
    """The median over epochs of `steps` mini-batches; the first captures, compiles and warms up."""
    ends, epochs = [], {"base_epochs": 0, "increment_epochs": 0, f"{phase}_epochs": rounds + 1}
    learner = Prototypes(PrototypesConfig(layers=LAYERS, consolidation=rule, **epochs), device=str(device))
    learner.engine = engine
    generator = torch.Generator(device).manual_seed(1)
    features = torch.rand(BATCH * steps, FEATURES, generator=generator, device=device) * 0.2
    if phase == "increment":
        learner.learn(features, [0] * len(features))
    labels = [number % 50 if phase == "base" else 1 for number in range(len(features))]
    learner.learn(features, labels, lambda progress: ends.append(time.perf_counter()))
    return statistics.median(end - start for start, end in pairwise(ends)) / steps


def main():
    options = parser(__doc__)
    options.add_argument("--phase", choices=("base", "increment"), help="one of the two only")
    options.add_argument("--rule", choices=("mas", "si"), help="one of the two only")
    options.add_argument("--steps", type=int, help="per round")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--tf32", action="store_true", help="faster, less exact matrix products on a GPU")
    options = options.parse_args()
    device = resolve_device(options.device)
    gpu = device.type == "cuda"
    if options.tf32:
        torch.set_float32_matmul_precision("high")
    fast.WORTH_COMPILING = 0  # the question is how fast a step is once compiled
    steps = options.steps or (200 if gpu else 16)
    rate = bandwidth(device)
    rows = [row("copy bandwidth", rate / 1e9, "GB/s")]
    for phase in (options.phase,) if options.phase else ("base", "increment"):
        for rule in (options.rule,) if options.rule else ("mas", "si"):
            mine, plain = (
                seconds_per_step(engine, phase, rule, device, steps, options.rounds) for engine in (FAST, PLAIN)
            )
            traffic = floor_bytes(Autoencoder(FEATURES, LAYERS, device="meta"), phase)
            name, judged = f"{phase}, {rule.upper()}", phase == "increment" and rule == "mas"
            rows += [
                row(f"{name}: floor, {traffic / 1e9:.2f} GB", traffic / rate * 1e3, "ms"),
                row(f"{name}: step", mine * 1e3, "ms"),
                row(f"{name}: step of the plain engine", plain * 1e3, "ms"),
                row(f"{name}: step / floor", mine / (traffic / rate), "ratio", "<= 2.0" if gpu and judged else ""),
                row(f"{name}: plain / step", plain / mine, "ratio", ">= 3" if not gpu and judged else ""),
            ]
    show(rows, device, options.json, tf32=options.tf32)


if __name__ == "__main__":
    main()
