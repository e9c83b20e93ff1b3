"""Write ONNX graphs: the part of its format that encoders and exported models need, and no package for it.

The format is Protocol Buffers: every field is a number with its kind, then the value; docs of ONNX's `onnx.proto` name
the numbers.

>>> graph = Graph("twice")
>>> x = graph.input("x", np.float32, ["batch", 3])
>>> graph.output(graph.add("Mul", x, graph.constant(np.float32(2))), "y", np.float32, ["batch", 3])
>>> len(graph.to_bytes())
126
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Parts = list[Any]  # bytes and arrays in a row: a message before it is written

IR, OPSET = 8, 18  # both understood by onnxruntime 1.14 and later; Resize is antialiased from opset 18 on
_TYPES = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "bool": 9, "str": 8}


class Graph:
    """Inputs, operators and outputs, in the order they are added."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: Parts = []
        self._constants: Parts = []
        self._inputs: Parts = []
        self._outputs: Parts = []
        self._made = 0

    def input(self, name: str, dtype: Any, shape: Sequence[int | str]) -> str:
        """Take a tensor in; a side given as text is free."""
        self._inputs += _message(11, _declared(name, dtype, shape))
        return name

    def output(self, value: str, name: str, dtype: Any, shape: Sequence[int | str]) -> None:
        """Give a value out under a name of its own."""
        self._nodes += _node("Identity", [value], name, {})
        self._outputs += _message(12, _declared(name, dtype, shape))

    def constant(self, value: Any) -> str:
        """Hold an array, or strings."""
        name = self._new_name()
        self._constants += _message(5, _tensor(name, np.asarray(value)))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Apply an operator to values; the value it makes."""
        name = self._new_name()
        self._nodes += _node(operator, inputs, name, attributes)
        return name

    def to_bytes(self, metadata: Mapping[str, str] | None = None) -> bytes:
        """The model file."""
        graph = [*self._nodes, *_text(2, self._name), *self._constants, *self._inputs, *self._outputs]
        model = [*_number(1, IR), *_text(2, "engram"), *_message(7, graph), *_message(8, _number(2, OPSET))]
        for key, value in (metadata or {}).items():
            model += _message(14, [*_text(1, key), *_text(2, value)])
        return b"".join(model)

    def _new_name(self) -> str:
        self._made += 1
        return f"v{self._made}"


def _node(operator: str, inputs: Iterable[str], output: str, attributes: Mapping[str, Any]) -> Parts:
    node: Parts = []
    for name in inputs:
        node += _text(1, name)
    node += [*_text(2, output), *_text(4, operator)]
    for name, value in attributes.items():
        node += _message(5, _attribute(name, value))
    return _message(1, node)


def _attribute(name: str, value: Any) -> Parts:
    if isinstance(value, int):
        return [*_text(1, name), *_number(3, value), *_number(20, 2)]
    if isinstance(value, float):
        return [*_text(1, name), b"\x15", np.float32(value).tobytes(), *_number(20, 1)]
    if isinstance(value, str):
        return [*_text(1, name), *_text(4, value), *_number(20, 3)]
    return [*_text(1, name), *(part for each in value for part in _number(8, each)), *_number(20, 7)]


def _tensor(name: str, value: Array) -> Parts:
    kind = "str" if value.dtype.kind == "U" else value.dtype.name
    parts = [*(part for side in value.shape for part in _number(1, side)), *_number(2, _TYPES[kind]), *_text(8, name)]
    if kind == "str":
        return parts + [part for text in value.reshape(-1).tolist() for part in _text(6, text)]
    raw = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return [*parts, _varint(9 << 3 | 2), _varint(raw.nbytes), raw.data]


def _declared(name: str, dtype: Any, shape: Sequence[int | str]) -> Parts:
    sides: Parts = []
    for side in shape:
        sides += _message(1, _text(2, side) if isinstance(side, str) else _number(1, side))
    kind = "str" if dtype is str else np.dtype(dtype).name
    tensor = [*_number(1, _TYPES[kind]), *_message(2, sides)]
    return [*_text(1, name), *_message(2, _message(1, tensor))]


def _message(field: int, parts: Parts) -> Parts:
    return [_varint(field << 3 | 2), _varint(sum(map(len, parts))), *parts]


def _text(field: int, text: str) -> Parts:
    return _message(field, [text.encode()])


def _number(field: int, value: int) -> Parts:
    return [_varint(field << 3), _varint(value % (1 << 64))]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
