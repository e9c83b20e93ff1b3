"""What a question needs is loaded, and nothing heavier."""

import subprocess
import sys


def test_encoding_loads_neither_torch_nor_anything_like_it():
    code = (
        "import sys, numpy as np\n"
        "from engram.images.stream import encode_all\n"
        "from engram.encoders.registry import create\n"
        "import engram.files.export\n"
        "encode_all(np.zeros((1, 9, 9, 3), np.uint8), create('efficientnet_lite0'))\n"
        "heavy = {'torch', 'scipy', 'sklearn', 'pandas', 'onnx', 'safetensors', 'matplotlib'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
