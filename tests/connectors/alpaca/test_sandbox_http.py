"""The sandbox's HTTP server, spoken to by hand."""

from __future__ import annotations

import socket
from contextlib import suppress

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from connectors.sandbox import SandboxServer


def spoken(server: SandboxServer, *pieces: bytes) -> bytes:
    """What comes back for some bytes, until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=600) as client:
        for piece in pieces:
            client.sendall(piece)
        client.shutdown(socket.SHUT_WR)
        found = b""
        while data := client.recv(65536):
            found += data
    return found


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ((b"nonsense\r\n\r\n",), b"400"),
        ((b"GET / HTTP/1.1\r\n\r\n",), b"400"),
        ((get("/sandbox/clock", "Connection: close"),), b"200"),
        ((get("/sandbox/clock")[:20], get("/sandbox/clock")[20:]), b"200"),
        ((b"GET /sandbox/clock HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",), b"200"),
    ],
)
def test_requests_whole_and_broken(broker: SandboxServer, pieces: tuple[bytes, ...], status: bytes) -> None:
    answer = spoken(broker, *pieces)
    assert answer.split(b" ", 2)[1] == status, answer[:200]
    assert httpx.get(f"{broker.url}/sandbox/clock").status_code == 200, "it goes on"


def test_a_body_that_is_too_large_is_not_read_to_its_end(broker: SandboxServer) -> None:
    with suppress(httpx.TransportError):  # it may close while the client is still sending
        assert httpx.post(f"{broker.url}/sandbox/clock", content=b"x" * 5_000_000).status_code == 413
    assert broker.state()["now"] == "2024-01-31T21:05:00Z"


def test_a_request_that_is_cut_off_changes_nothing(broker: SandboxServer) -> None:
    head = b"POST /sandbox/clock HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"
    spoken(broker, head, b'{"advance": "open"}')
    assert broker.state()["now"] == "2024-01-31T21:05:00Z"


def test_several_requests_on_one_connection(broker: SandboxServer) -> None:
    answers = spoken(broker, get("/sandbox/clock") * 3 + get("/nowhere"))
    assert answers.count(b"HTTP/1.1 200") == 3
    assert answers.count(b"HTTP/1.1 401") == 1, "a stranger hears nothing about what there is"


def test_a_body_may_wait_for_permission(broker: SandboxServer) -> None:
    body = b'{"advance": "open"}'
    lines = ["POST /sandbox/clock HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", "Expect: 100-continue"]
    head = "\r\n".join([*lines, "", ""])
    with socket.create_connection(("127.0.0.1", broker.port), timeout=600) as client:
        client.sendall(head.encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 100")
        client.sendall(body)
        assert client.recv(1000).startswith(b"HTTP/1.1 200")


def test_what_is_no_handshake_is_refused(broker: SandboxServer) -> None:
    answer = spoken(broker, get("/stream", "Upgrade: websocket", "Connection: Upgrade"))
    assert answer.startswith(b"HTTP/1.1 400")


def test_an_unknown_stream_says_so_and_ends(broker: SandboxServer) -> None:
    with connect(broker.stream_url + "/v2/unheard-of") as stream:
        assert b"not found" in stream.recv(60)
        with pytest.raises(ConnectionClosed):
            stream.recv(60)


def test_a_server_that_stops_ends_every_connection(broker: SandboxServer) -> None:
    broker.fault("hang", path="/v2/clock")
    with (
        socket.create_connection(("127.0.0.1", broker.port), timeout=600) as client,
        connect(broker.stream_url + "/stream") as stream,
    ):
        client.sendall(get("/v2/clock"))
        broker.__exit__(None, None, None)
        with pytest.raises(ConnectionClosed):
            stream.recv(60)
        with suppress(ConnectionResetError):
            assert client.recv(100) == b""
