"""Write a model as an ONNX graph: python -m engram.web.export MODEL OUT.

The server runs this in a process of its own, because torch's exporter would keep predictions waiting. What went wrong
is the last line on stderr.
"""

import sys

from engram import IncrementalClassifier, ModelFileError
from engram.web.worker import lower_priority


def main(model: str, out: str) -> None:
    """Export the model; exits with the reason if that fails."""
    lower_priority()
    try:
        IncrementalClassifier.load(model, device="cpu").export(out)
    except (ModelFileError, OSError, RuntimeError, ValueError) as error:
        sys.exit(" ".join(str(error).split()))


if __name__ == "__main__":
    main(*sys.argv[1:])
