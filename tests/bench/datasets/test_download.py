import hashlib
import http.server
import io
import tarfile
import threading

import numpy as np
import pytest

from engram.bench.datasets.download import Archive, obtain
from engram.datasets.dataset import DataError


def tar_of(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content or b""))
    return buffer.getvalue()


NOISE = np.random.default_rng(0).bytes(3_000_000)  # several blocks, and gzip cannot shrink it
CONTENT = tar_of({"birds/a.bin": NOISE, "other.txt": b"x"})


class Server(http.server.ThreadingHTTPServer):
    """Sends `body`; breaks the connection off after `cut` bytes of each answer, and knows ranges if `ranges`."""

    body, cut, ranges = CONTENT, None, True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.server.ranges else 0
        if self.path == "/absent/birds.tgz":
            return self.send_error(404)
        if start >= len(self.server.body):
            return self.send_error(416)
        rest = self.server.body[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: self.server.cut])
        return None

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def archive(server, path="birds.tgz", content=CONTENT):
    return Archive(f"http://127.0.0.1:{server.server_port}/{path}", hashlib.md5(content).hexdigest(), "birds")


def test_download_check_unpack(server, tmp_path):
    seen = []
    root = tmp_path / "new" / "root"
    folder = obtain(archive(server), root, download=True, progress=lambda done, total: seen.append((done, total)))
    assert folder == root / "birds"
    assert (folder / "a.bin").read_bytes() == NOISE
    assert sorted(path.name for path in root.iterdir()) == ["birds", "birds.tgz"]
    assert seen == sorted(seen)
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    obtain(archive(server), root, download=True)
    assert server.asked == [None]


def test_what_is_there_needs_no_server(tmp_path):
    (tmp_path / "birds.tgz").write_bytes(CONTENT)
    nowhere = Archive("http://127.0.0.1:9/birds.tgz", hashlib.md5(CONTENT).hexdigest(), "birds")
    assert (obtain(nowhere, tmp_path, download=True) / "a.bin").exists()


def test_a_broken_connection_is_resumed(server, tmp_path):
    server.cut = 1_200_000
    folder = obtain(archive(server), tmp_path, download=True)
    assert (folder / "a.bin").read_bytes() == NOISE
    assert server.asked == [None, "bytes=1200000-", "bytes=2400000-"]


def test_a_part_from_an_earlier_run_is_resumed(server, tmp_path):
    (tmp_path / "birds.tgz.part").write_bytes(CONTENT[:1000])
    assert obtain(archive(server), tmp_path, download=True).is_dir()
    assert server.asked == ["bytes=1000-"]


def test_a_whole_part_is_only_checked(server, tmp_path):
    (tmp_path / "birds.tgz.part").write_bytes(CONTENT)
    assert obtain(archive(server), tmp_path, download=True).is_dir()
    assert not (tmp_path / "birds.tgz.part").exists()


def test_a_server_without_ranges_starts_over(server, tmp_path):
    server.ranges = False
    (tmp_path / "birds.tgz.part").write_bytes(b"stale" * 1000)
    assert obtain(archive(server), tmp_path, download=True).is_dir()


def test_giving_up_keeps_the_part(server, tmp_path):
    server.cut = 100
    with pytest.raises(DataError, match=r"keeps breaking off.*try again"):
        obtain(archive(server), tmp_path, download=True)
    assert (tmp_path / "birds.tgz.part").stat().st_size == 500
    server.cut = None
    assert obtain(archive(server), tmp_path, download=True).is_dir()
    assert server.asked[-1] == "bytes=500-"


def test_wrong_md5(server, tmp_path):
    with pytest.raises(DataError, match="does not have the md5"):
        obtain(archive(server, content=b"else"), tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "birds.tgz").write_bytes(b"put here by hand")
    with pytest.raises(DataError, match="remove it"):
        obtain(archive(server), tmp_path, download=True)
    assert (tmp_path / "birds.tgz").exists()


def test_no_such_page(server, tmp_path):
    with pytest.raises(DataError, match=r"404.*put the file at .*birds\.tgz by hand"):
        obtain(archive(server, "absent/birds.tgz"), tmp_path, download=True)


def test_offline_is_one_line_saying_where_to_put_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    nowhere = Archive("http://127.0.0.1:9/birds.tgz", "0" * 32, "birds")
    with pytest.raises(DataError, match=r"refused.*put the file at .*birds\.tgz by hand") as caught:
        obtain(nowhere, tmp_path, download=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "files",
    [{"birds/../../escaped": b"x"}, {"birds/a": b"x", "birds/link": None}, {"else/a": b"x"}],
    ids=["climbs", "links", "other"],
)
def test_an_archive_that_reaches_outside_is_refused(tmp_path, files):
    root = tmp_path / "root"
    root.mkdir()
    content = tar_of(files)
    (root / "birds.tgz").write_bytes(content)
    bad = Archive("http://127.0.0.1:9/birds.tgz", hashlib.md5(content).hexdigest(), "birds")
    with pytest.raises(DataError):
        obtain(bad, root, download=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["root", "birds.tgz"]


def test_half_an_archive_leaves_no_folder(tmp_path):
    (tmp_path / "birds.tgz").write_bytes(CONTENT[:2_000_000])
    cut = Archive("http://127.0.0.1:9/birds.tgz", hashlib.md5(CONTENT[:2_000_000]).hexdigest(), "birds")
    with pytest.raises(DataError, match="cannot unpack"):
        obtain(cut, tmp_path, download=True)
    assert [path.name for path in tmp_path.iterdir()] == ["birds.tgz"]
