"""Keys stay home: whatever a server echoes, no text that leaves the client holds a secret."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.models.wire import ASKED, Wire, reply, response

from surgeval.errors import BadInput
from surgeval.models.chat import OpenAIChat, open_chat
from surgeval.models.chat.client import HIDDEN, Secrets
from surgeval.qa import open_judges, parse_judge

KEY = 'sk-Ab/12+"34'


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    monkeypatch.setenv("SURGEVAL_API_KEY", KEY)
    with Wire() as running:
        yield running


@pytest.mark.parametrize("spaced", [f"{KEY}\n", f" {KEY} ", f"{KEY}\r\n\t"])
def test_space_around_a_key_is_not_part_of_it(wire: Wire, monkeypatch: pytest.MonkeyPatch, spaced: str) -> None:
    monkeypatch.setenv("SURGEVAL_API_KEY", spaced)
    assert wire.chat().complete(ASKED).text == "CORRECT"
    assert f"\r\nAuthorization: Bearer {KEY}\r\n".encode() in wire.requests[0]


@pytest.mark.parametrize("broken", ["sk-12\n3456", "sk-12\x003456", "sk-12\x1b[2J", "sk-12é3456"])
def test_a_key_with_a_control_character_is_refused_without_being_shown(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    if "\0" in broken:  # no environment can hold it
        monkeypatch.setattr("os.environ", {"SURGEVAL_API_KEY": broken})
    else:
        monkeypatch.setenv("SURGEVAL_API_KEY", broken)
    with pytest.raises(BadInput, match="SURGEVAL_API_KEY has a control character") as error:
        wire.chat()
    assert "sk-12" not in str(error.value)
    assert "3456" not in str(error.value)


FORMS = [
    KEY, quote(KEY), quote(KEY, safe=""), quote(KEY, safe="").lower(), json.dumps(KEY)[1:-1],
    json.dumps(json.dumps(KEY))[3:-3], repr(KEY)[1:-1], KEY.replace("/", "\\/"), KEY.replace('"', "&quot;"),
    KEY.upper(),
    base64.b64encode(KEY.encode()).decode(), base64.urlsafe_b64encode(KEY.encode()).decode(),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_no_echo_of_the_key_comes_out(wire: Wire, form: str) -> None:
    answers = [
        reply(f"the key is {form}."), response(401, f"bad key {form}"),
        response(401, json.dumps({"error": {"message": f"bad key {form}"}})), response(200, f"<html>{form}</html>"),
        response(500, "x" * 150 + form), f"HTTP/1.1 999999 {form}\r\n\r\n".encode(),
        response(200, b"{}", Content_Encoding=form), response(307, Location=f"http://{quote(form)}/"),
        response(200, json.dumps({"error": [form]})),
    ]  # fmt: skip
    for answer in answers:
        wire.script = lambda connection, answer=answer: connection.sendall(answer)  # type: ignore[misc]
        said = wire.failure().casefold()
        assert form.casefold() not in said
        assert "ab/12" not in said
        assert form[:8].casefold() not in said, said


def test_a_key_at_the_cut_of_a_message_leaves_no_half(wire: Wire) -> None:
    for length in range(150, 200):
        wire.script = lambda connection, n=length: connection.sendall(response(401, "x" * n + KEY))  # type: ignore[misc]
        assert "sk-" not in wire.failure()


def test_the_query_of_an_address_is_sent_and_neither_stored_nor_shown(wire: Wire) -> None:
    wire.script = lambda connection: connection.sendall(reply("you sent s3cret/v and s3cret%2Fv"))
    chat = wire.chat(query="?api=1&key=s3cret%2Fv#part")
    assert chat.complete(ASKED).text == f"you sent {HIDDEN} and {HIDDEN}"
    assert wire.requests[0].startswith(b"POST /v1/chat/completions?api=1&key=s3cret%2Fv HTTP/1.1\r\n")
    assert chat.identity == f"openai m {wire.url}?api=…&key=… max_tokens=16 t=0.0"
    wire.script = lambda connection: connection.sendall(response(403, "s3cret/v"))
    assert "s3cret" not in wire.failure(query="?key=s3cret%2Fv")
    assert "s3cret" not in wire.failure(query="?s3cret%2Fv")


def test_the_login_of_a_proxy_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with Wire() as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:proxy%2Fpassword@127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        login = base64.b64encode(b"me:proxy/password").decode()
        proxy.script = lambda connection: connection.sendall(reply(f"proxy/password {login}"))
        assert OpenAIChat("m", "http://far.example/v1").complete(ASKED).text == f"{HIDDEN} {HIDDEN}="


@pytest.mark.parametrize(
    "name",
    ["openai:@http://h/v1?key=s3cret", "openai:m@http://u:s3cret@h:0/v1", "openai:m@http://?key=s3cret",
     "openai:m@http://u:s3cret@h/v1", "openai:m@http://h/v 1?s3cret", "opnai:m@http://h/v1?key=s3cret",
     "openai:m@http://h:99999/?s3cret", "openai:m@HTTPS://h/v1?key=s3cret", "openai:m?key=s3cret",
     "openai:https://h/v1?key=s3cret", "openai:m@http://u:s3cret/x@h/v1", "openai:m@http://u:s3cret?x@h/v1"],
)  # fmt: skip
def test_a_refused_name_is_shown_without_what_is_secret_in_it(name: str) -> None:
    for opener in (open_chat, parse_judge):
        with pytest.raises(BadInput) as error:
            opener(name)
        assert "s3cret" not in str(error.value)


def test_a_judge_is_called_by_its_name_without_secrets(wire: Wire) -> None:
    (judge,) = open_judges([f"openai:m@{wire.url}?key=s3cret"], open_chat)
    assert judge.name == f"openai:m@{wire.url}?key=…"


def test_what_is_too_short_to_be_secret_does_not_change_an_answer(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SURGEVAL_API_KEY", "EMPTY")
    wire.script = lambda connection: connection.sendall(reply("an EMPTY bag, 1 clip"))
    assert wire.chat(query="?v=1").complete(ASKED).text == "an EMPTY bag, 1 clip"


@given(st.text(min_size=6), st.text())
def test_a_secret_is_hidden_after_any_text(secret: str, text: str) -> None:
    hidden = Secrets([secret]).hide(text + secret)
    assert secret not in hidden or secret in HIDDEN


@given(st.text("xyz0129", min_size=6), st.text(" \n.,;!?%&<>手术éß"))
def test_a_text_without_the_secret_stays_as_it_is(secret: str, text: str) -> None:
    # No form of such a secret has one of these characters.
    assert Secrets([secret]).hide(text) == text
    assert Secrets([secret]).hide(f"{text}{secret}{text}") == f"{text}{HIDDEN}{text}"
    assert Secrets([]).hide(text + secret) == text + secret


@pytest.mark.parametrize("echoed", ["Pj4+Pz8/fn5+", "Pj4-Pz8_fn5-"])
def test_both_alphabets_of_base64_are_hidden(echoed: str) -> None:
    secret = ">>>???~~~"
    assert base64.b64encode(secret.encode()) == b"Pj4+Pz8/fn5+"
    assert Secrets([secret]).hide(f"got {echoed}") == f"got {HIDDEN}"
