"""The one way to write a file: whole or not at all."""

import os
import time

import pytest

from engram.files.atomic import remove_abandoned, replacing


def test_the_new_content_takes_the_place_of_the_old_when_the_block_ends(tmp_path):
    target = tmp_path / "m"
    target.write_text("old")
    target.chmod(0o640)
    with replacing(target) as temporary:
        assert temporary.parent == tmp_path
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["m"]


def test_a_new_file_has_the_permissions_new_files_get(tmp_path):
    (tmp_path / "plain").write_text("")
    with replacing(tmp_path / "m") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failure_leaves_the_old_content_and_nothing_else(tmp_path):
    (tmp_path / "m").write_text("old")

    def interrupted() -> None:
        with replacing(tmp_path / "m") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "m").read_text() == "old"
    assert os.listdir(tmp_path) == ["m"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "m"
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    with replacing(tmp_path / "link") as temporary:
        assert temporary.parent == target.parent  # a rename works within one file system only
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert target.read_text() == "new"


def test_what_a_killed_process_left_is_removed_once_it_is_old(tmp_path):
    def leave(name: str, minutes: float) -> None:
        with replacing(tmp_path / name) as temporary:
            temporary.write_text("half")
            killed = tmp_path / temporary.name
            kept = killed.read_bytes()
        killed.write_bytes(kept)  # as if the process had never come to rename it
        (tmp_path / name).unlink()
        os.utime(killed, (time.time() - 60 * minutes,) * 2)

    for name in ("[m]", "other"):
        leave(name, 11)
        leave(name, 1)
    (tmp_path / "mine.tmp").write_text("")
    os.utime(tmp_path / "mine.tmp", (0, 0))
    remove_abandoned(tmp_path, "[m]")
    assert sorted(name.split(".")[1] for name in os.listdir(tmp_path)) == ["[m]", "other", "other", "tmp"]
    remove_abandoned(tmp_path)
    assert sorted(name.split(".")[1] for name in os.listdir(tmp_path)) == ["[m]", "other", "tmp"]
