"""ONNX files: write one from a torch program, run it, and make its network one of 8-bit integers."""

import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]
LABEL = "label"
_LARGE = 2**20  # numbers in a matrix
_TOGETHER = 5  # pictures


def write(
    program: torch.export.ExportedProgram, path: Path, given: str, outputs: Sequence[str], about: dict[str, Any]
) -> None:
    """Write a program as ONNX, with `about` as its metadata, and `label` beside its outputs: the name of the `best`."""
    try:
        import onnx
        import onnxruntime  # noqa: F401  (for the check)
        import onnxscript  # noqa: F401  (for torch)
    except ImportError as error:
        raise ValueError(f"{error.name} is not installed; pip install 'engram-learn[onnx]'") from None
    made = torch.onnx.export(program, input_names=[given], output_names=list(outputs), dynamo=True, verbose=False)
    if made is None:
        raise RuntimeError("torch.onnx.export returned no graph")  # it does if it writes a file itself
    proto = made.model_proto
    names = onnx.helper.make_tensor("names", onnx.TensorProto.STRING, [len(about["labels"])],
                                    [name.encode() for name in about["labels"]])  # fmt: skip
    proto.graph.initializer.append(names)
    proto.graph.node.append(onnx.helper.make_node("Gather", ["names", "best"], [LABEL]))
    proto.graph.output.append(onnx.helper.make_tensor_value_info(LABEL, onnx.TensorProto.STRING, ["batch"]))
    for key, value in about.items():
        proto.metadata_props.add(key=key, value=value if isinstance(value, str) else json.dumps(value))
    proto.producer_name = "engram"
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, path)


def open_session(path: Path) -> Any:
    """The file, ready to be run."""
    import onnxruntime

    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def quantise(path: Path, given: str, pictures: Array) -> None:
    """Have the network of an ONNX file computed in 8-bit integers, scaled by what these pictures make of them.

    Clips and sums are taken along with the convolutions: a ReLU6 then bounds what has to be told apart in 256 steps.
    Of the method, only matrices that take megabytes become integers; scores stay in floating point.
    """
    import onnx
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.quant_utils import add_pre_process_metadata

    model = onnx.load(path)
    add_pre_process_metadata(model)  # torch has simplified it and noted all shapes: nothing to warn about
    large = {one.name for one in model.graph.initializer if math.prod(one.dims) >= _LARGE}
    floats = [node.name for node in model.graph.node if node.op_type == "MatMul" and not large & set(node.input)]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / "int8.onnx"
        quantize_static(
            model, made, _Batches(given, pictures), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            op_types_to_quantize=["Conv", "Clip", "Add", "MatMul"], nodes_to_exclude=floats,
        )  # fmt: skip
        shutil.move(made, path)


class _Batches:
    """What onnxruntime's quantiser reads: some pictures after others, then None."""

    def __init__(self, given: str, pictures: Array) -> None:
        starts = range(0, len(pictures), _TOGETHER)
        self._next: Iterator[dict[str, Array]] = ({given: pictures[at : at + _TOGETHER]} for at in starts)

    def get_next(self) -> dict[str, Array] | None:
        return next(self._next, None)
