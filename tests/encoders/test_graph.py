"""Graphs as ONNX's own package and ONNX Runtime read them."""

import numpy as np
import onnx
import onnxruntime
import pytest

from engram.encoders.graph import IR, OPSET, Graph


def run(graph: Graph, **inputs: np.ndarray) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(graph.to_bytes(), providers=["CPUExecutionProvider"]).run(None, inputs)


def test_onnx_finds_nothing_to_complain_about():
    graph = Graph("all kinds")
    x = graph.input("x", np.float32, ["batch", 4])
    names = graph.constant(np.array(["ein", "zwei", "سه"]))
    best = graph.add("ArgMax", graph.add("Slice", x, *(graph.constant(np.array([n])) for n in (0, 3, 1))), axis=1,
                     keepdims=0)  # fmt: skip
    graph.output(graph.add("Gather", names, best), "label", str, ["batch"])
    graph.output(graph.add("Elu", x, alpha=0.5), "y", np.float32, ["batch", 4])
    model = onnx.load_from_string(graph.to_bytes({"labels": '["ü"]'}))
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == IR
    assert [each.version for each in model.opset_import] == [OPSET]
    assert {each.key: each.value for each in model.metadata_props} == {"labels": '["ü"]'}
    assert [side.dim_param or side.dim_value for side in model.graph.input[0].type.tensor_type.shape.dim] == [
        "batch",
        4,
    ]
    rows = np.array([[0, 2, 1, 9], [0, -1, 5, 9]], np.float32)
    label, y = run(graph, x=rows)
    assert label.tolist() == ["zwei", "سه"]
    np.testing.assert_allclose(y, np.where(rows > 0, rows, 0.5 * np.expm1(rows)), rtol=1e-6)


@pytest.mark.parametrize(
    "value",
    [np.float32(-1.5), np.arange(6, dtype=np.int64).reshape(2, 3) - 3, np.zeros((0, 2), np.float32),
     np.array([True, False]), np.arange(300, dtype=np.uint8), np.arange(6, dtype=np.float32).reshape(2, 3).T],
)  # fmt: skip
def test_constants_come_out_as_they_went_in(value):
    graph = Graph("constant")
    graph.output(graph.constant(value), "y", value.dtype, value.shape)
    (found,) = run(graph)
    np.testing.assert_array_equal(found, value)
    assert found.dtype == value.dtype


def test_large_and_negative_numbers_are_written():
    graph = Graph("numbers")
    x = graph.input("x", np.float32, [2, 3, 300])
    graph.output(graph.add("Softmax", x, axis=-1), "y", np.float32, [2, 3, 300])
    (found,) = run(graph, x=np.zeros((2, 3, 300), np.float32))
    np.testing.assert_allclose(found, 1 / 300, rtol=1e-6)
