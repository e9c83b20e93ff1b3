"""Pages that stand by themselves: what is text is escaped, tables have headings and a name."""

from engram.bench.html import Cell, document, table, tiles


def test_cells_are_escaped_unless_they_are_html():
    html = table("a & b", ["<class>", "n"], [["<b>", Cell("<i>1</i>", "text")], ["dash", None]])
    assert 'aria-label="a &amp; b" tabindex="0"' in html
    assert '<th scope="col">&lt;class&gt;</th><th scope="col">n</th>' in html
    assert '<tr><th scope="row">&lt;b&gt;</th><td class="text"><i>1</i></td></tr>' in html
    assert '<tr><th scope="row">dash</th><td aria-label="none">–</td></tr>' in html


def test_groups_span_their_columns():
    html = table("t", ["m", "a", "b", "c"], [["x", "1", "2", Cell("3", "low")]], [("two", 2), ("one", 1)])
    assert (
        '<thead><tr><th scope="col" rowspan="2">m</th><th scope="colgroup" colspan="2" class="first">two</th>'
        '<th scope="colgroup" colspan="1" class="first">one</th></tr><tr><th scope="col" class="first">a</th>'
        '<th scope="col">b</th><th scope="col" class="first">c</th></tr></thead>' in html
    )
    assert '<td class="first">1</td><td>2</td><td class="low first">3</td>' in html


def test_a_document_has_its_title_and_style_and_fetches_nothing():
    html = document("<t>", ["<p>body</p>", tiles([("<1>", "a & b")])], ".own {}")
    assert "<title>&lt;t&gt;</title>" in html
    assert html.index("color-scheme: light dark;") < html.index(".own {}")
    assert "<p>body</p>" in html
    assert '<ul class="tiles"><li><b>&lt;1&gt;</b><span>a &amp; b</span></li></ul>' in html
    assert "http" not in html
