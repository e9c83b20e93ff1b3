"""ONNX files: write one from a torch program, and run it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

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
