"""A language-model service on loopback: OpenAI chat completions and embeddings, Anthropic messages, batches of both,
faults included."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from engine.clock import LiveClock


@dataclass(frozen=True, kw_only=True)
class Say:
    """A proper reply. Token counts are the vendor's own: OpenAI's `cached` is part of `tokens_in`, Anthropic's is not;
    without `tokens_in` it is a quarter of the characters that were sent. `reasoned` is part of `tokens_out`. `ending`
    is `whole`, `cut off`, `refused`, or `missing` for a reply without a stop reason. `counted` False leaves the token
    counts out of OpenAI's. `tier` is the one that it bills by, where it names one. `called`: the text is the arguments
    of a tool."""

    text: str = '{"action": "BUY", "size": 3}'
    ending: str = "whole"
    tokens_in: int | None = None
    cached: int = 0
    written: int = 0
    tokens_out: int = 20
    reasoned: int = 0
    counted: bool = True
    tier: str = ""
    called: bool = False


@dataclass(frozen=True)
class Fail:
    """An error reply with the vendor's error body."""

    status: int
    message: str = "something is wrong"
    code: str = ""
    param: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Raw:
    """A body as it is."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Hang:
    """No reply until the server closes."""


@dataclass(frozen=True)
class Reset:
    """The connection breaks: before the reply, or (in a stream) after its first piece."""


@dataclass(frozen=True)
class ErrorEvent:
    """A stream that begins well and then reports an error."""

    kind: str = "overloaded_error"
    message: str = "we are overloaded"


Turn = Say | Fail | Raw | Hang | Reset | ErrorEvent


@dataclass
class FakeBatch:
    """A batch as the service keeps it: the calls by their id, the metadata, and how often it has been looked at."""

    calls: dict[str, dict[str, Any]]
    metadata: dict[str, str]
    looks: int = 0


@dataclass
class FakeLLMServer:
    """Plays `script` turn by turn, then repeats its last turn; `requests` are the parsed bodies it was sent. A run's
    preflight is answered beside the script, and kept apart, unless it is `plays_preflight`. `models` are those that it
    lists; `gets` are the paths that were read, `limits` headers of every reply. A batch ends with the look after
    `looks` others; lines whose body `expires` have no answer, the others those of the script, and with `batch_trouble`
    every reply about a batch has that status. With `refuses_batches` OpenAI's end before they begin."""

    script: list[Turn] = field(default_factory=lambda: [Say()])
    requests: list[dict[str, Any]] = field(default_factory=list)
    preflights: list[dict[str, Any]] = field(default_factory=list)
    plays_preflight: bool = False
    headers: list[dict[str, str]] = field(default_factory=list)
    busiest: int = 0
    port: int = 0
    models: list[str] = field(default_factory=list)
    gets: list[str] = field(default_factory=list)
    files: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    batches: dict[str, FakeBatch] = field(default_factory=dict)
    looks: int = 1
    batch_trouble: int = 0
    refuses_batches: bool = False
    expires: Callable[[dict[str, Any]], bool] = lambda body: False
    limits: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.closing = threading.Event()

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def play(self, *turns: Turn) -> None:
        """Replaces the script and forgets what was asked so far."""
        with self._lock:
            self.script = list(turns)
            self.requests.clear()
            self.headers.clear()

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def line(self, body: dict[str, Any]) -> Say | None:
        """The answer of a batch to one of its calls."""
        turn = None if self.expires(body) else self.next_turn(body, {})
        if turn is not None:
            with self._lock:
                self.requests.remove(body)
        return _counted(turn, body, "system" not in body) if isinstance(turn, Say) else None

    def made_batch(self) -> None:
        """Hear that a batch was made, before its maker does."""

    def entered(self, step: int) -> None:
        with self._lock:
            self._now += step
            self.busiest = max(self.busiest, self._now)


def is_preflight(body: dict[str, Any]) -> bool:
    """True for a question of a run's preflight."""
    return "Answer with the word ready." in json.dumps(body.get("messages"))


@contextmanager
def fake_llm_server(state: FakeLLMServer | None = None) -> Iterator[FakeLLMServer]:
    """The server, running on a free port of loopback; `state` is who answers, unless it plays a script."""
    state = state or FakeLLMServer()

    class Handler(_Handler):
        server_state = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):  # no proxy of whoever runs the tests
            patch.delenv(name, raising=False)
            patch.delenv(name.lower(), raising=False)
        try:
            yield state
        finally:
            state.closing.set()
            server.shutdown()
            server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every reply waits 40 ms for an acknowledgement
    server_state: FakeLLMServer

    def log_message(self, *args: object) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that was killed
            super().handle()

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        sent = self.rfile.read(length)
        if len(sent) < length:  # a client that was killed in the middle
            self.close_connection = True
            return
        if self.path == "/v1/files":
            lines = [json.loads(line) for line in sent.splitlines() if line.startswith(b'{"custom_id"')]
            name = f"file-{len(self.server_state.files) + 1}"
            self.server_state.files[name] = {line["custom_id"]: line["body"] for line in lines}
            self._send_json({"id": name, "object": "file", "purpose": "batch"})
            return
        body = json.loads(sent)
        if self.path.endswith("/batches"):
            if not self._is_trouble():
                self._make_batch(body)
            return
        vendor = "openai" if self.path.startswith(("/v1/chat/completions", "/v1/embeddings")) else "anthropic"
        self.server_state.entered(1)
        try:
            if is_preflight(body) and not self.server_state.plays_preflight:
                self.server_state.preflights.append(body)
                turn: Turn = Say(text='{"word": "ready"}', tokens_in=10, tokens_out=2)
            else:
                turn = self.server_state.next_turn(body, {k.lower(): v for k, v in self.headers.items()})
            self._reply(turn, vendor, bool(body.get("stream")), body)
        finally:
            self.server_state.entered(-1)

    def _make_batch(self, body: dict[str, Any]) -> None:
        state = self.server_state
        if (file := body.get("input_file_id")) is not None:
            batch = FakeBatch(state.files[file], body["metadata"])
        else:
            batch = FakeBatch({one["custom_id"]: one["params"] for one in body["requests"]}, {})
        name = f"batch_{len(state.batches) + 1}"
        state.batches[name] = batch
        state.made_batch()
        self._send_json(self._batch_body(name))

    def do_GET(self) -> None:
        state, parts = self.server_state, self.path.partition("?")[0].strip("/").split("/")
        state.gets.append(self.path)
        if parts[-1] == "models":
            listed = [{"id": name, "object": "model"} for name in state.models]
            self._send_json({"object": "list", "data": listed})
        elif self._is_trouble():
            return
        elif parts[-1] == "batches":
            names = list(state.batches)[::-1]
            self._send_json({"object": "list", "data": [self._batch_body(name) for name in names], "has_more": False})
        elif parts[-2] == "batches":
            state.batches[parts[-1]].looks += 1
            self._send_json(self._batch_body(parts[-1]))
        else:
            name = parts[-2].removeprefix("output-")
            lines = [self._line(one, body) for one, body in state.batches[name].calls.items()]
            text = "\n".join(json.dumps(line) for line in lines if line is not None)
            self._send(200, text.encode(), "application/x-jsonl")

    def _is_trouble(self) -> bool:
        status = self.server_state.batch_trouble
        if status:
            self._send(status, b'{"error": {"message": "no batches today"}}', "application/json")
        return bool(status)

    def _line(self, name: str, body: dict[str, Any]) -> dict[str, Any] | None:
        said = self.server_state.line(body)
        if self._is_openai:
            return said and {"custom_id": name, "response": {"status_code": 200, "body": _openai_body(said)}}
        result = {"type": "succeeded", "message": _anthropic_body(said)} if said else {"type": "expired"}
        return {"custom_id": name, "result": result}

    @property
    def _is_openai(self) -> bool:
        return "/messages/" not in self.path

    def _batch_body(self, name: str) -> dict[str, Any]:
        batch = self.server_state.batches[name]
        ended = batch.looks > self.server_state.looks
        if self._is_openai:
            status = {"status": "completed", "output_file_id": f"output-{name}"} if ended else {"status": "in_progress"}
            if self.server_state.refuses_batches:
                status = {"status": "failed", "errors": {"data": [{"message": "enqueued token limit reached"}]}}
            head = {"object": "batch", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
            own = {
                "id": name,
                "created_at": LiveClock().now().timestamp(),
                "input_file_id": "f",
                "metadata": batch.metadata,
            }
            return head | own | status
        counts = {"processing": len(batch.calls), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        made = LiveClock().now().isoformat()
        results = f"{self.server_state.anthropic_url}/v1/messages/batches/{name}/results" if ended else None
        return {
            "id": name,
            "type": "message_batch",
            "created_at": made,
            "expires_at": made,
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "results_url": results,
        }

    def _send_json(self, body: object) -> None:
        self._send(200, json.dumps(body).encode(), "application/json")

    def _reply(self, turn: Turn, vendor: str, stream: bool, body: dict[str, Any]) -> None:
        if isinstance(turn, Say):
            turn = _counted(turn, body, vendor == "openai")
        if isinstance(turn, Hang):
            self.server_state.closing.wait(30)
            self.close_connection = True
        elif isinstance(turn, Fail):
            error = {"message": turn.message, "type": turn.code or "invalid_request_error"}
            if vendor == "openai":
                payload = {"error": error | {"code": turn.code or None, "param": turn.param}}
            else:
                payload = {"type": "error", "error": error}
            self._send(turn.status, json.dumps(payload).encode(), "application/json", turn.headers)
        elif isinstance(turn, Raw):
            self._send(turn.status, turn.body, turn.content_type, turn.headers)
        elif isinstance(turn, Reset) and not stream:
            self._break()
        elif stream:
            usage = bool(body.get("stream_options", {}).get("include_usage"))
            self._stream(turn, _openai_events(turn, usage) if vendor == "openai" else _anthropic_events(turn))
        else:
            assert isinstance(turn, Say)
            if self.path == "/v1/embeddings":
                self._send(200, json.dumps(_embeddings_body(body)).encode(), "application/json")
                return
            reply = _openai_body(turn) if vendor == "openai" else _anthropic_body(turn)
            self._send(200, json.dumps(reply).encode(), "application/json")

    def _send(self, status: int, body: bytes, content_type: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        if any(name == "date" for name, _ in headers):
            self.send_response_only(status)
        else:
            self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        for name, value in (*headers, *self.server_state.limits.items()):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, turn: Turn, events: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events[:2] if isinstance(turn, Reset) else events:
            self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            self.wfile.flush()
        if isinstance(turn, Reset):
            self._break()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _break(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(2)


def _counted(turn: Say, body: dict[str, Any], at_openai: bool) -> Say:
    """A reply with its input counted by what was sent, where the script does not say."""
    if turn.tokens_in is not None:
        return turn
    sent = len(json.dumps([body.get("system"), _without_pictures(body.get("messages"))])) // 4
    return replace(turn, tokens_in=max(1, sent - turn.cached * (not at_openai)))


def _without_pictures(turns: Any) -> Any:
    if isinstance(turns, list):
        return [_without_pictures(one) for one in turns]
    if isinstance(turns, dict):
        return None if "image" in str(turns.get("type")) else {k: _without_pictures(v) for k, v in turns.items()}
    return turns


_OPENAI_STOP = {"whole": "stop", "cut off": "length", "refused": "stop", "missing": None}
_ANTHROPIC_STOP = {"whole": "end_turn", "cut off": "max_tokens", "refused": "refusal", "missing": None}


def _openai_usage(turn: Say) -> dict[str, Any] | None:
    if not turn.counted:
        return None
    return {
        "prompt_tokens": turn.tokens_in,
        "completion_tokens": turn.tokens_out,
        "total_tokens": (turn.tokens_in or 0) + turn.tokens_out,
        "completion_tokens_details": {"reasoning_tokens": turn.reasoned},
        "prompt_tokens_details": {"cached_tokens": turn.cached, "cache_write_tokens": turn.written},
    }


def _tier(turn: Say) -> dict[str, str]:
    return {"service_tier": turn.tier} if turn.tier else {}


def _openai_body(turn: Say) -> dict[str, Any]:
    refused = turn.ending == "refused"
    message = {
        "role": "assistant",
        "content": None if refused or turn.called else turn.text,
        "refusal": turn.text if refused else None,
        **(_openai_call(turn.text) if turn.called else {}),
    }
    choice = {"index": 0, "message": message, "finish_reason": _OPENAI_STOP[turn.ending]}
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "served", **_tier(turn)}
    return head | {"choices": [choice], "usage": _openai_usage(turn)}


def _openai_call(arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "type": "function", "function": {"name": "answer", "arguments": arguments}}]}


def vector_of(text: str, dimension: int = 8) -> list[float]:
    """What the service makes of a text: numbers of no meaning, and not of length 1."""
    digest = blake2b(text.encode(), digest_size=dimension).digest()
    return [byte / 16 - 8 for byte in digest]


def _embeddings_body(body: dict[str, Any]) -> dict[str, Any]:
    vectors = [{"object": "embedding", "index": at, "embedding": vector_of(t)} for at, t in enumerate(body["input"])]
    # The order of the list is nobody's promise; the index is.
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    return {"object": "list", "data": vectors[::-1], "model": "served", "usage": usage}


def _openai_events(turn: Turn, with_usage: bool) -> list[bytes]:
    say = turn if isinstance(turn, Say) else Say()
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "served", **_tier(say)}

    def chunk(delta: dict[str, Any], stop: str | None = None) -> dict[str, Any]:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}

    key = "refusal" if say.ending == "refused" else "content"
    events: list[Any] = [chunk({"role": "assistant", "content": ""})]
    pieces = _pieces(say.text)
    events += [chunk(_openai_call(piece) if say.called else {key: piece}) for piece in pieces]
    if isinstance(turn, ErrorEvent):
        events = [*events[:2], {"error": {"message": turn.message, "type": turn.kind}}]
        return [_sse(event) for event in events]
    if say.ending != "missing":
        events.append(chunk({}, _OPENAI_STOP[say.ending]))
    if with_usage:
        events.append(head | {"choices": [], "usage": _openai_usage(say)})
    return [*(_sse(event) for event in events), b"data: [DONE]\n\n"]


def _anthropic_usage(turn: Say) -> dict[str, Any]:
    return {
        "input_tokens": turn.tokens_in,
        "cache_read_input_tokens": turn.cached,
        "cache_creation_input_tokens": turn.written,
        "output_tokens": turn.tokens_out,
        "output_tokens_details": {"thinking_tokens": turn.reasoned},
        **_tier(turn),
    }


def _anthropic_body(turn: Say) -> dict[str, Any]:
    refused = turn.ending == "refused"
    details = {"type": "refusal", "category": None, "explanation": turn.text} if refused else None
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": [] if refused else [_anthropic_block(turn)],
        "stop_reason": _ANTHROPIC_STOP[turn.ending],
        "stop_sequence": None,
        "stop_details": details,
        "usage": _anthropic_usage(turn),
    }


def _anthropic_block(turn: Say) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "t1", "name": "answer"}
    return call | {"input": json.loads(turn.text)} if turn.called else {"type": "text", "text": turn.text}


def _anthropic_events(turn: Turn) -> list[bytes]:
    say = turn if isinstance(turn, Say) else Say()
    whole = _anthropic_body(say)
    usage = _anthropic_usage(say)
    start = whole | {"content": [], "stop_reason": None, "stop_details": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start | {"usage": usage | {"output_tokens": 1}}}
    ]
    if whole["content"]:
        (block,) = whole["content"]
        empty = {"input": {}} if say.called else {"text": ""}
        events.append({"type": "content_block_start", "index": 0, "content_block": block | empty})
        for piece in _pieces(say.text):
            delta = {"type": "text_delta", "text": piece}
            if say.called:
                delta = {"type": "input_json_delta", "partial_json": piece}
            events.append({"type": "content_block_delta", "index": 0, "delta": delta})
        events.append({"type": "content_block_stop", "index": 0})
    if isinstance(turn, ErrorEvent):
        error = {"type": "error", "error": {"type": turn.kind, "message": turn.message}}
        return [_sse(event, event["type"]) for event in [*events[:3], error]]
    if say.ending != "missing":
        stop = {key: whole[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
        output = {"output_tokens": usage["output_tokens"]}
        events.append({"type": "message_delta", "delta": stop, "usage": output})
        events.append({"type": "message_stop"})
    return [_sse(event, event["type"]) for event in events]


def _pieces(text: str) -> list[str]:
    """A text in parts of seven characters; a very long one in at most five hundred parts."""
    length = max(7, -(-len(text) // 500))
    return [text[start : start + length] for start in range(0, len(text), length)]


def _sse(data: dict[str, Any], event: str | None = None) -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
