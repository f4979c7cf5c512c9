"""Films and pictures are files, whatever they are called and whatever is in them: nothing opens the network."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from surgeval.datasets import (
    MemoryDataset,
    check,
    clip_video,
    convert,
    cut_frames,
    open_dataset,
    read_image,
    video_index,
)
from surgeval.errors import DataError
from surgeval.records import Frame, ImageRef
from surgeval.vocab import load_labels


class Server:
    """A loopback port that counts who comes."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.visits = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                visitor, _ = self._socket.accept()
            except OSError:
                return
            self.visits += 1
            visitor.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Running, and the working folder is the data's: a bare file name reaches the decoder as it stands."""
    monkeypatch.chdir(tmp_path)
    running = Server()
    yield running
    running.close()


def film(path: Path) -> Path:
    with path.open("wb") as file, av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=5)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for number in range(5):
            picture = np.full((64, 64, 3), 20 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def addresses(port: int) -> list[str]:
    return [f"http:127.0.0.1:{port}?x", f"tcp:127.0.0.1:{port}?x", f"concat:http:127.0.0.1:{port}|x",
            f"ftp:127.0.0.1:{port}", f"rtp:127.0.0.1:{port}"]  # fmt: skip


def test_the_server_counts(server: Server) -> None:
    with pytest.raises(av.FFmpegError):
        av.open(f"http://127.0.0.1:{server.port}/x.mp4")
    assert server.visits > 0


def test_a_film_called_like_an_address_is_read_from_the_disk(server: Server) -> None:
    for name in addresses(server.port):
        path = film(Path(f"{name}.mp4"))
        assert len(video_index(path)) == 5
        assert read_image(ImageRef(path, 2)).shape == (64, 64, 3)
    assert check(open_dataset(Path())).frames == 25
    assert server.visits == 0


def test_a_picture_called_like_an_address_is_read_from_the_disk(server: Server) -> None:
    for name in addresses(server.port):
        Image.new("RGB", (8, 8)).save(Path(f"{name}.png").absolute())
        assert read_image(ImageRef(Path(f"{name}.png"))).shape == (8, 8, 3)
    assert server.visits == 0


PLAYLISTS = {
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nhttp://127.0.0.1:{port}/x.ts\n#EXT-X-ENDLIST\n",
    "concat": "ffconcat version 1.0\nfile http://127.0.0.1:{port}/x.mp4\n",
    "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
            'mediaPresentationDuration="PT9S"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" '
            'bandwidth="1"><BaseURL>http://127.0.0.1:{port}/</BaseURL><SegmentList><Initialization sourceURL="i.mp4"/>'
            '<SegmentURL media="1.mp4"/></SegmentList></Representation></AdaptationSet></Period></MPD>',
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video {port} RTP/AVP 96\n",
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["mp4", "avi", "mkv", "mpg"])
@pytest.mark.parametrize("kind", PLAYLISTS)
def test_a_play_list_under_a_films_name_leads_nowhere(server: Server, kind: str, suffix: str) -> None:
    path = Path(f"operation.{suffix}")
    path.write_text(PLAYLISTS[kind].format(port=server.port))
    with pytest.raises(DataError, match="found a damaged video"):
        video_index(path)
    assert server.visits == 0


def test_films_and_frames_are_written_to_the_disk_under_such_names(server: Server, tmp_path: Path) -> None:
    source = film(Path("operation.mp4"))
    Image.new("RGB", (64, 64)).save("1.png")
    for number, name in enumerate(addresses(server.port)):
        clip_video(source, Path(f"{name}.mp4"), (0.0, 0.5))
        assert len(video_index(Path(f"{name}.mp4"))) == 3
        cut_frames(source, Path(name), every=0.5)
        assert [path.name for path in sorted(Path(name).iterdir())] == ["000000.jpg", "000002.jpg"]
        frame = Frame(name, "1", 1, None, ImageRef(Path("1.png")), 64, 64)
        convert(MemoryDataset(load_labels("cholec80"), [frame]), Path(f"{name}-films{number}"), "mp4")
        (written,) = (tmp_path / f"{name}-films{number}").glob("*.mp4")
        assert len(video_index(written)) == 1
    assert server.visits == 0


def test_frames_are_not_written_through_links(tmp_path: Path) -> None:
    source = film(tmp_path / "operation.mp4")
    precious = tmp_path / "precious.jpg"
    precious.write_text("precious")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "000000.jpg").symlink_to(precious)
    with pytest.raises(Exception, match=r"000000\.jpg: is a link"):
        cut_frames(source, tmp_path / "out")
    (tmp_path / "clip.mp4").symlink_to(precious)
    clip_video(source, tmp_path / "clip.mp4", (0.0, 0.5))  # takes the place of the link
    assert precious.read_text() == "precious"
    assert not (tmp_path / "clip.mp4").is_symlink()
