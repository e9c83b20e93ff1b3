"""Steps whose care real features seldom ask for."""

import numpy as np
import onnxruntime

from engram.encoders.graph import Graph
from engram.files.steps import Steps, add_steps, nearest_mean, nearest_sample, signed_root


def run(steps: Steps, features: np.ndarray, wanted: str) -> np.ndarray:
    graph = Graph("steps")
    x = graph.input("features", np.float32, ["n", features.shape[1]])
    graph.output(add_steps(graph, steps, x)[wanted], "y", np.float32, ["n", "m"])
    session = onnxruntime.InferenceSession(graph.to_bytes(), providers=["CPUExecutionProvider"])
    return session.run(None, {"features": features.astype(np.float32)})[0]


def test_roots_keep_the_sign():
    np.testing.assert_array_equal(run(signed_root(), np.array([[-4.0, 0.0, 9.0]]), "z"), [[-2, 0, 3]])


def test_features_far_from_zero_are_told_apart():
    rng = np.random.default_rng(0)
    samples, rows = 1000 + rng.normal(size=(12, 5)), np.array([0] * 3 + [1] * 8 + [2])
    distances = np.linalg.norm(samples[:, None] - samples, axis=2)
    expected = -np.stack([distances[:, rows == row].min(axis=1) for row in range(3)], axis=1)
    found = run(nearest_sample(samples, rows), samples, "scores")
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_features_of_no_length_are_like_nothing():
    np.testing.assert_array_equal(run(nearest_mean(np.eye(3)), np.zeros((1, 3)), "scores"), [[0, 0, 0]])
