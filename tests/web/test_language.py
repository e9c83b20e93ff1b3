"""The page's language files: the same messages in each, all of them used, and none missing."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import engram.web

STATIC = Path(engram.web.__file__).parent / "static"
LANGUAGES = {path.stem: json.loads(path.read_text()) for path in (STATIC / "lang").glob("*.json")}
PLURALS = {"en": {"one", "other"}, "de": {"one", "other"}, "fa": {"one", "other"}}


def forms(message: Any) -> list[str]:
    return list(message.values()) if isinstance(message, dict) else [message]


def placeholders(message: Any) -> set[str]:
    return {name for form in forms(message) for name in re.findall(r"\{(\w+)\}", form)}


def test_german_and_a_language_from_right_to_left_are_there():
    assert set(LANGUAGES) == {"en", "de", "fa"}
    page = (STATIC / "text.js").read_text()
    offered = re.search(r"LANGUAGES = \{(.*)\}", page)
    assert offered is not None
    assert set(re.findall(r"(\w+): ", offered[1])) == set(LANGUAGES)


@pytest.mark.parametrize("language", ["de", "fa"])
def test_every_language_says_the_same_with_the_same_values(language):
    english, other = LANGUAGES["en"], LANGUAGES[language]
    assert set(other) == set(english)
    for key, message in english.items():
        assert isinstance(other[key], dict) == isinstance(message, dict), key
        assert placeholders(other[key]) == placeholders(message), key
        if isinstance(message, dict):
            assert set(other[key]) == PLURALS[language], key
            assert set(message) == PLURALS["en"], key
        assert all(form.strip() for form in forms(other[key])), key


def test_the_messages_are_those_that_the_page_uses():
    code = "".join(path.read_text() for path in [*STATIC.glob("*.js"), STATIC / "index.html"])
    quoted = set(re.findall(r'"([a-z][a-z.-]*)"', code))
    starts = set(re.findall(r"t\(`([a-z]+\.)\$\{", code))  # as in t(`lesson.${state}`)
    ends = {f"{key}.what" for key in re.findall(r'action\("[\w ]+", "(\w+)"', code)}
    unused = {key for key in LANGUAGES["en"] if key not in quoted | ends and not key.startswith(tuple(starts))}
    assert unused == set()
    asked = re.findall(r'\bt\("([^"]+)"', code) + re.findall(r'data-t(?:-label)?="([^"]+)"', code)
    assert set(asked) | ends <= set(LANGUAGES["en"])
    for group, members in {
        "lesson": {"sending", "waiting", "learning", "done", "failed", "cancelled", "lost"},
        "stage": {"ready", "wait", "look", "train", "saved"},
        "change": {"base", "learn", "more", "forget", "rename", "refuse", "merge"},
        "health": {"weak", "lost"},
    }.items():
        assert {f"{group}.{member}" for member in members} <= set(LANGUAGES["en"])


def test_no_text_is_written_into_the_page_itself():
    text = re.sub(
        r"<(script|style|noscript|title).*?</\1>|<[^>]*>", " ", (STATIC / "index.html").read_text(), flags=re.S
    )
    assert text.split() == ["engram"]
