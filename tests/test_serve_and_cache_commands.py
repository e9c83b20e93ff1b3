"""engram serve up to the server, with a terminal and without; engram cache."""

import sys
import webbrowser

import pytest
from toys import paint

import engram.cli.serve as command


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The server does not run, and the browser only says what it would open."""
    from engram.web.connections import PageServer

    pages: list[str] = []
    monkeypatch.setattr(PageServer, "run", lambda self, sockets: None)
    monkeypatch.setattr(webbrowser, "open", pages.append)
    return pages


def test_in_a_terminal_the_page_is_opened_and_its_token_drawn(engram, opened, monkeypatch, capsys):
    run = ("serve", "m.engram", "--port", "0", "--backbone", "averages")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    alone = engram(*run)
    assert alone.code == 0, alone.err
    assert opened == [alone.out.strip()]
    assert "█" not in alone.err  # no token, no need for a code
    everywhere = engram(*run, "--host", "0.0.0.0", "--no-open")
    assert opened == [alone.out.strip()]
    assert "?token=" in everywhere.out
    assert "also http://" in everywhere.err
    assert "█" in everywhere.err


def test_without_a_terminal_nothing_is_opened(engram, opened):
    done = engram("serve", "m.engram", "--port", "0", "--backbone", "averages", "--host", "0.0.0.0")
    assert done.code == 0, done.err
    assert opened == []
    assert "█" not in done.err


def test_without_its_packages_the_page_says_how_to_get_them(engram, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "segno" else name)
    done = engram("serve", "m.engram")
    assert (done.code, done.out) == (2, "")
    assert "pip install 'engram-learn[web]'" in done.err


def test_what_is_kept_is_listed_and_cleared(engram, tmp_path):
    paint(tmp_path / "pictures", "red", "blue", n=3)
    run = ("--cache", "kept")
    features = ("features", "folder", "--data", "pictures", "--backbone", "averages", "--device", "cpu")
    assert "no features are kept in kept" in engram("cache", *run).out
    filled = engram(*features, *run, "--json")
    assert filled.json["train"] == {"pictures": 6, "features": 8, "skipped": 0}
    (entry,) = engram("cache", *run, "--json").json
    assert (entry["count"], entry["dtype"]) == (6, "float32")
    assert entry["identity"] == filled.json["backbone"]
    assert entry["identity"] in engram("cache", *run).out
    wrong = engram("cache", *run, "clear", "vgg16", "--yes")
    assert wrong.code == 2
    assert f"no features of 'vgg16' are kept; there are {entry['identity']}" in wrong.err
    assert "MB removed" in engram("cache", *run, "clear", entry["identity"], "--yes").out
    assert engram("cache", *run, "--json").json == []
