"""Whitened prototypes: one class more, getting ready to answer, and answering, against refitting and against numpy.

    python benchmarks/whitened.py --device cpu --json whitened.json

Made-up features, d = 2048, 500 samples a class; recency, encoder and projections off. Refitted on all data, to compare:

* scikit-learn's LinearDiscriminantAnalysis(solver="eigen", shrinkage=d / (d + N)), the shrinkage of ε's rule;
* scikit-learn's LogisticRegression, `--iterations` of L-BFGS at most: far from converged, so its time is a lower bound.

Both run on the CPU whatever `--device` says, and get `--cap` samples of all classes at most. Where that is fewer than
there are, the row says so, and the seconds are a lower bound again: nothing is extrapolated. Ours learns all samples.
"""

import statistics
import time
import warnings

import numpy as np
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from table import parser, row, show

from engram.device import resolve_device
from engram.methods.whitened import Whitened

WIDTH = 2048
QUERIES = 10_000


def samples_of(number, n):
    """Samples of one class, as after a ReLU: some directions vary more than others, in every class alike."""
    centre = np.random.default_rng([number, 0]).normal(size=WIDTH)
    noise = np.random.default_rng([number, n]).standard_normal((n, WIDTH), dtype=np.float32)
    spread = np.linspace(2, 0.2, WIDTH, dtype=np.float32)
    return np.maximum(centre.astype(np.float32) + noise * spread, 0)


def timed(function, device):
    start = time.perf_counter()
    answer = function()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, answer


def teach(device, sizes, per_class):
    """States with so many classes known, learned one class at a time."""
    learner, states = Whitened(device=str(device)), {}
    for number in range(max(sizes)):
        learner.learn(samples_of(number, per_class), [number] * per_class)
        if number + 1 in sizes:
            states[number + 1] = learner.state()
    return states


def measure_learning(states, device, per_class, rounds):
    """Seconds to learn one class more and, after it, to get ready to answer; in turns, the median of each."""
    seconds = {known: ([], []) for known in states}
    one = torch.zeros(1, WIDTH)
    for _ in range(rounds + 1):
        for known, state in states.items():
            learner = Whitened.from_state(state, str(device))
            X, y = samples_of(known, per_class), [known] * per_class
            learning, _ = timed(lambda learner=learner, X=X, y=y: learner.learn(X, y), device)
            first, _ = timed(lambda learner=learner: learner.predict(one), device)
            again, _ = timed(lambda learner=learner: learner.predict(one), device)
            seconds[known][0].append(learning)
            seconds[known][1].append(first - again)
    return {known: [statistics.median(values[1:]) for values in both] for known, both in seconds.items()}


def refit(make, classes, per_class, cap):
    """Seconds to fit on samples of all classes, `cap` of them at most, and how many there were."""
    kept = max(2, min(per_class, cap // classes))
    X = np.concatenate([samples_of(number, kept) for number in range(classes)])
    y = np.repeat(np.arange(classes), kept)
    model = make(len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
    return seconds, len(X)


def by_numpy(state):
    """The same answers in numpy, all that can be computed beforehand computed: a function of features."""
    space = vars(Whitened.from_state(state, "cpu")._space())
    unit = float(state.tensors["network.unit"])
    origin, means = space["origin"].numpy(), space["means"].numpy()
    whitening = np.linalg.inv(space["factor"].numpy())
    squares = space["squares"].numpy()
    directions = (means / np.sqrt(np.maximum(squares - space["noise"].numpy(), squares / 10))[:, None]).T.copy()

    def predict(X):
        w = (np.sqrt(X) / unit - origin) @ whitening
        return ((w @ directions) / np.linalg.norm(w, axis=1, keepdims=True)).argmax(axis=1)

    return predict


def measure_answering(state, device, rounds):
    """Seconds for all queries, ours and numpy's, in turns; and how often the two agree."""
    classes = len(state.meta["labels"])
    X = np.concatenate([samples_of(number, 10) for number in np.arange(QUERIES // 10) % classes])
    learner, theirs = Whitened.from_state(state, str(device)), by_numpy(state)
    seconds, agree = ([], []), 0.0
    for _ in range(rounds + 1):
        ours, answer = timed(lambda: learner.predict(X), device)
        numpys, rows = timed(lambda: theirs(X), torch.device("cpu"))
        seconds[0].append(ours)
        seconds[1].append(numpys)
        agree = float((answer == np.asarray(learner.labels)[rows]).mean())
    return [statistics.median(values[1:]) for values in seconds], agree


def main():
    options = parser(__doc__)
    options.add_argument("--classes", type=int, nargs="+", default=[10, 100, 1000])
    options.add_argument("--samples", type=int, default=500)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--cap", type=int, default=20_000)
    options.add_argument("--iterations", type=int, default=10)
    options = options.parse_args()
    device, sizes, n = resolve_device(options.device), sorted(options.classes), options.samples
    states = teach(device, sizes, n)
    learning = measure_learning(states, device, n, options.rounds)
    rivals = {
        "LDA": lambda count: LinearDiscriminantAnalysis(solver="eigen", shrinkage=WIDTH / (WIDTH + count)),
        "logistic regression": lambda count: LogisticRegression(max_iter=options.iterations),
    }
    rows = []
    for known in sizes:
        seconds, ready = learning[known]
        two_cores = device.type == "cpu" and known == sizes[-1]
        rows.append(row(f"{known:,} classes known: learn one more", seconds, "s"))
        rows.append(row(f"{known:,} classes known: get ready to answer", ready, "s", "<= 0.25" if two_cores else ""))
        for name, make in rivals.items():
            taken, used = refit(make, known + 1, n, options.cap)
            note = f" on {used:,} of {(known + 1) * n:,} samples" if used < (known + 1) * n else ""
            rows.append(row(f"{known:,} classes known: {name} refitted{note}", taken, "s"))
            rows.append(row(f"{known:,} classes known: {name} / ours", taken / seconds, "ratio"))
    few, many = sizes[0], sizes[-1]
    rows.append(
        row(f"learn, {many:,} over {few:,} classes known", learning[many][0] / learning[few][0], "ratio", "<= 1.1")
    )
    (ours, numpys), agree = measure_answering(states[many], device, min(3, options.rounds))
    shared = sum(t.numel() * t.element_size() for name, t in states[many].tensors.items() if name[:7] != "classes")
    kept = sum(t.numel() * t.element_size() for t in states[many].tensors.values())
    rows += [
        row(f"answer {QUERIES:,} samples, {many:,} classes", ours, "s"),
        row("the same by numpy on the CPU", numpys, "s"),
        row("numpy / ours", numpys / ours, "ratio", ">= 1"),
        row("answers that agree with numpy's", agree, "share", ">= 0.999"),
        row("kept for all classes together", shared, "bytes", "<= 4300000"),
        row("kept for each class", (kept - shared) / many, "bytes", "<= 4100"),
    ]
    show(rows, device, options.json, iterations=options.iterations, cap=options.cap)


if __name__ == "__main__":
    main()
