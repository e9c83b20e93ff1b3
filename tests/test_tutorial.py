"""The tutorial can be pasted, line by line."""

import os
import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()


def test_every_block_of_the_tutorial_runs(tmp_path):
    blocks = re.findall(r"```bash\n(.*?)```", TUTORIAL, re.DOTALL)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "python3").symlink_to(sys.executable)
    engram = tools / "engram"
    engram.write_text(f"#!{sys.executable}\nfrom engram.cli import main\nmain()\n")
    engram.chmod(0o755)
    # The interpreter behind a link would not find its packages by itself.
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "OMP_NUM_THREADS": "1",
    }
    script = "set -eu\n" + "\n".join(f"echo '=== {i}'\n{block}" for i, block in enumerate(blocks))
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = dict(enumerate(done.stdout.split("=== ")[1:]))
    assert "self test: right 100%" in said[0]
    assert "base: 5 classes learned from 90 pictures" in done.stderr
    assert "test/circle/00.png: circle (" in said[3]
    assert len(re.findall(r"^test/triangle/\d\d\.png,triangle,", said[3], re.MULTILINE)) >= 4
    assert "1/1 star: learned from 18 pictures" in done.stderr
    right = re.search(r"([\d.]+)% of 30 pictures right", said[4])
    assert right
    assert float(right[1]) > 80
    assert "unknown" in said[5]
    assert "learned star from 18 pictures" in said[6]
    assert "test/circle/00.png: circle" not in said[7]
    assert said[8].startswith("8\nsquare")
