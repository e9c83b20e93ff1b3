"""An HTML page that stands by itself: no script, nothing fetched, light and dark."""

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<main>
$body
</main>
</body>
</html>
""")


def document(title: str, parts: Iterable[str], style: str = "") -> str:
    """The whole page; `parts` are HTML already, `style` comes after the style sheet all pages share."""
    shared = files("engram.html").joinpath("style.css").read_text(encoding="utf-8")
    return _PAGE.substitute(title=escape(title), style=shared + style, body="\n".join(parts))
