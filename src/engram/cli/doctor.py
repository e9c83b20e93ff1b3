"""engram doctor: is everything here, and whole?"""

import typer

from engram.cli.app import app, print_json
from engram.cli.options import CARE, AsJson, OptionalModel

_EXAMPLES = """Examples:

engram doctor                   # is everything here that is needed?

engram doctor birds.engram      # is every tensor in the file what was written?"""


@app.command(epilog=_EXAMPLES, rich_help_panel=CARE)
def doctor(model: OptionalModel = None, as_json: AsJson = False) -> None:
    """Look at the installation and learn something small; or compare a model file with its checksums.

    A flipped bit is found, and the tensor it lies in is named; the exit code is 3.
    """
    from engram.store.doctor import check_machine, check_model

    found = check_machine() if model is None else check_model(model)
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        parts = [f"{key} {_shown(part)}" for key, part in value.items()] if isinstance(value, dict) else [_shown(value)]
        typer.echo(f"{name.replace('_', ' ')}: {', '.join(parts)}")


def _shown(value: object) -> str:
    return "none" if value is None else "yes" if value is True else str(value)
