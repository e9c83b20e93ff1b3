"""engram serve up to the server, with a terminal and without."""

import sys
import webbrowser

import pytest

import engram.cli.serve as command

pytest.importorskip("fastapi")


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
