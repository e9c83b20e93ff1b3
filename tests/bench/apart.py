"""The command `engram` for `torchrun`, each process in a folder of its own: apart.py FOLDER ARGUMENTS…"""

import os
import sys
from pathlib import Path

from engram.cli import main

if __name__ == "__main__":
    os.chdir(Path(sys.argv.pop(1)) / os.environ["RANK"])
    main()
