"""An HTML page that stands by itself: no script, nothing fetched, light and dark; and the tables and tiles on it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import accumulate
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
    shared = files("engram.bench.html").joinpath("style.css").read_text(encoding="utf-8")
    return _PAGE.substitute(title=escape(title), style=shared + style, body="\n".join(parts))


@dataclass(frozen=True)
class Cell:
    """A cell whose content is HTML already, and its CSS classes: `text` aligns left."""

    html: str
    classes: str = ""


# A str is text and is escaped; None is shown as a dash.
Content = str | Cell | None


def table(
    name: str, head: Sequence[str | Cell], rows: Iterable[Sequence[Content]], groups: Sequence[tuple[str, int]] = ()
) -> str:
    """A table that scrolls by itself where it is too wide, also from the keyboard. A row's first cell is its heading.

    `groups` are titles above the columns after the first, each with the number of columns it spans.
    """
    starts = set(accumulate((columns for _, columns in groups), initial=1)) if groups else set[int]()
    names = [_cell("th", title, i in starts, scope="col") for i, title in enumerate(head)]
    if groups:
        spans = [_cell("th", title, True, scope="colgroup", colspan=n) for title, n in groups]
        names = [_cell("th", head[0], scope="col", rowspan=2), *spans, "</tr><tr>", *names[1:]]
    body = []
    for heading, *cells in rows:
        found = (_cell("td", content, i in starts) for i, content in enumerate(cells, 1))
        body.append(f"<tr>{_cell('th', heading, scope='row')}{''.join(found)}</tr>")
    return (
        f'<div class="scroll" role="region" aria-label="{escape(name)}" tabindex="0"><table><thead><tr>{"".join(names)}'
        f"</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def tiles(found: Iterable[tuple[str, str]]) -> str:
    """The few numbers to remember, each with what it is."""
    items = (f"<li><b>{escape(value)}</b><span>{escape(what)}</span></li>" for value, what in found)
    return f'<ul class="tiles">{"".join(items)}</ul>'


def _cell(tag: str, content: Content, first: bool = False, **attributes: str | int) -> str:
    """`first` draws a line to the left of a group's first column."""
    text, classes = "–" if content is None else escape(str(content)), ""
    if isinstance(content, Cell):
        text, classes = content.html, content.classes
    if first or classes:
        attributes["class"] = f"{classes} first".strip() if first else classes
    if content is None:
        attributes["aria-label"] = "none"
    given = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{tag}{given}>{text}</{tag}>"
