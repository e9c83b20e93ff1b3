"""ONNX files: write one from a torch program, run it, and make its network one of 8-bit integers."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]
LABEL = "label"


def write(
    program: torch.export.ExportedProgram, path: Path, given: str, outputs: Sequence[str], about: dict[str, Any]
) -> None:
    """Write a program as ONNX, with `about` as its metadata, and `label` beside its outputs: the name of the `best`."""
    try:
        import onnx
        import onnxruntime  # noqa: F401  (for the check)
        import onnxscript  # noqa: F401  (for torch)
    except ImportError as error:
        raise ValueError(f"{error.name} is not installed; pip install 'engram[onnx]'") from None
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


def quantise(path: Path, given: str, pictures: Sequence[Array]) -> None:
    """Have the convolutions of an ONNX file computed in 8-bit integers, scaled by what these pictures make of them.

    What comes after them, where the method weighs small differences, stays in floating point.
    """
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / "int8.onnx"
        quantize_static(
            path, made, _Pictures(given, pictures), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, op_types_to_quantize=["Conv"],
        )  # fmt: skip
        shutil.move(made, path)


class _Pictures:
    """What onnxruntime's quantiser reads: one picture after another, then None."""

    def __init__(self, given: str, pictures: Sequence[Array]) -> None:
        self._next: Iterator[dict[str, Array]] = ({given: picture[None]} for picture in pictures)

    def get_next(self) -> dict[str, Array] | None:
        return next(self._next, None)
