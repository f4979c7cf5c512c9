"""Servers behind TLS: checked certificates, the same deadline, and a tunnel through the proxy."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.models.wire import ASKED, Wire, read_request, reply

from surgeval.models.chat import ChatOptions, OpenAIChat
from surgeval.models.chat.http import _context
from surgeval.qa import ChatError

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl to make a certificate")
OPTIONS = ChatOptions(timeout=60, tries=1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost and far.example, with its key, in one file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
               "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:far.example", "-keyout",
               str(path), "-out", f"{path}.crt"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    _context.cache_clear()
    yield
    _context.cache_clear()


@pytest.fixture
def secure(certificate: Path) -> Iterator[Callable[[Callable[[ssl.SSLSocket], None]], int]]:
    """Starts a server that speaks TLS and hands each connection to a script; gives its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listeners: list[socket.socket] = []

    def start(script: Callable[[ssl.SSLSocket], None]) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve() -> None:
            while True:
                try:
                    plain, _ = listener.accept()
                    with context.wrap_socket(plain, server_side=True) as connection:
                        read_request(connection)
                        script(connection)
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for listener in listeners:
        listener.close()


Start = Callable[[Callable[[ssl.SSLSocket], None]], int]


@pytest.mark.usefixtures("trusted")
def test_a_trusted_server_answers(secure: Start) -> None:
    port = secure(lambda connection: connection.sendall(reply("CORRECT")))
    assert OpenAIChat("m", f"https://localhost:{port}/v1", OPTIONS).complete(ASKED).text == "CORRECT"


def test_a_server_with_an_unknown_certificate_gets_no_question(secure: Start) -> None:
    _context.cache_clear()
    port = secure(lambda connection: connection.sendall(reply("CORRECT")))
    with pytest.raises(ChatError, match=r"no connection \(self.signed certificate\) \(1 try\)"):
        OpenAIChat("m", f"https://localhost:{port}/v1", ChatOptions(timeout=60, tries=3)).complete(ASKED)


@pytest.mark.usefixtures("trusted")
def test_headers_that_drip_through_tls_end_at_the_time_out(secure: Start) -> None:
    over = threading.Event()

    def drip(connection: ssl.SSLSocket) -> None:
        while not over.wait(0.05):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    port = secure(drip)
    with pytest.raises(ChatError, match="no reply in 1 s"):
        OpenAIChat("m", f"https://localhost:{port}/v1", ChatOptions(timeout=1, tries=1)).complete(ASKED)
    over.set()


def test_a_handshake_that_never_comes_ends_at_the_time_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://localhost:{silent.getsockname()[1]}/v1"
        with pytest.raises(ChatError, match=r"no reply in 0\.5 s"):
            OpenAIChat("m", url, ChatOptions(timeout=0.5, tries=1)).complete(ASKED)


@pytest.mark.usefixtures("trusted")
def test_through_a_tunnel_the_proxy_sees_neither_key_nor_question(
    secure: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = secure(lambda connection: connection.sendall(reply("CORRECT")))
    passed: list[bytes] = []

    def tunnel(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with socket.create_connection(("127.0.0.1", port)) as far:

            def back() -> None:
                while data := far.recv(65536):
                    connection.sendall(data)

            answers = threading.Thread(target=back, daemon=True)
            answers.start()
            while data := connection.recv(65536):
                passed.append(data)
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)
            answers.join(60)

    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SURGEVAL_API_KEY", "sk-123456789")
    with Wire(tunnel) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        assert OpenAIChat("m", "https://far.example/v1", OPTIONS).complete(ASKED).text == "CORRECT"
        assert proxy.requests[0].startswith(b"CONNECT far.example:443 HTTP/1.")
        assert b"sk-123456789" not in proxy.requests[0] + b"".join(passed)
