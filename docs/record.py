#!/usr/bin/env python3
"""Make docs/terminal.svg: runs the commands below, on the tutorial's pictures, and keeps what they say.

python docs/record.py
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
SCENES = [
    ("ls -C shapes", ""),
    ("engram learn shapes.engram shapes", ""),
    ("ls -C shapes", "# a folder has appeared"),
    ("engram learn shapes.engram shapes", "# learns what is new, without the old pictures"),
    ("engram predict shapes.engram test/star strange --top 2 --unknown auto", ""),
    ("engram forget shapes.engram circle --yes", ""),
    ("engram undo shapes.engram --yes", ""),
    ("engram doctor shapes.engram", ""),
]


def run(command: str, folder: Path) -> str:
    """What a command says."""
    arguments = shlex.split(command)
    if arguments[0] == "engram":
        arguments = [sys.executable, "-c", "from engram.cli import main; main()", *arguments[1:]]
    done = subprocess.run(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{command}: {done.stdout}")
    return done.stdout.rstrip()


def main() -> None:
    """Draw the pictures, run the commands, save the drawing."""
    code = re.search(r"cat > draw.py <<'EOF'\n(.*?)EOF\n", (HERE / "tutorial.md").read_text(), re.DOTALL)
    assert code is not None
    console = Console(record=True, width=100, force_terminal=True, file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "draw.py").write_text(code[1])

        def draw(*arguments: str) -> None:
            subprocess.run([sys.executable, "draw.py", *arguments], cwd=folder, check=True)

        draw("shapes", "30", "circle", "square", "triangle", "hexagon", "cross")
        draw("test", "2", "star")
        draw("strange", "1", "stripes")
        for number, (command, remark) in enumerate(SCENES):
            if number == 2:
                draw("shapes", "30", "star")
            console.print(
                Text.assemble(("$ ", "bold green"), (command, "bold"), (f"  {remark}" if remark else "", "dim"))
            )
            console.print(Text(run(command, folder)))
    drawing = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="engram"), flags=re.DOTALL)
    drawing = drawing.replace("Fira Code, monospace", "monospace")  # nothing is to be fetched
    (HERE / "terminal.svg").write_text(drawing)


if __name__ == "__main__":
    main()
