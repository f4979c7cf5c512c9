"""`surgeval studio`: label surgical video in the browser."""

from __future__ import annotations

import html
import os
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer

from surgeval.cli.texts import login_name
from surgeval.console import require_models, rich_console
from surgeval.console.panels import grouped
from surgeval.errors import BadInput, visible
from surgeval.progress import phases

SHARING = "Advanced: several annotators"


def register(app: typer.Typer) -> None:
    """Add `studio` to the commands."""
    app.command()(studio)


@grouped({SHARING: "author host token no_token name database"})
def studio(
    folder: Annotated[
        Path | None, typer.Argument(help="Films, images, folders of images, or a set of questions.", show_default=False)
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="A phantom operation with a detector's proposals.")] = False,
    schema: Annotated[
        str | None, typer.Option(help="For a new project: prostatd, cholect50, or a JSON file.", show_default=False)
    ] = None,
    detector: Annotated[
        list[Path] | None, typer.Option(help="A detector that the page offers for proposals.", show_default=False)
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option(min=0.001, max=1000, help="Frames a second of new folders of images.", show_default="1"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Default: a folder's own, always; 0: any free one.", show_default=False),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    author: Annotated[str | None, typer.Option(help="Your name. Default: the one you logged in with.")] = None,
    host: Annotated[str, typer.Option(help="Address to serve at; 0.0.0.0 for other machines too.")] = "127.0.0.1",
    token: Annotated[str | None, typer.Option(help="Access token. Generated and printed if omitted.")] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Require no token: every account on this machine gets access.")
    ] = False,
    name: Annotated[list[str] | None, typer.Option(help="A name under which others reach this machine.")] = None,
    database: Annotated[
        str | None, typer.Option(help="postgresql://…, where several servers share a project.", show_default=False)
    ] = None,
) -> None:
    """Label instruments, what they do and to what, in the browser. Every edit is stored at once, in the folder itself.

    Example: [bold]surgeval studio --demo[/bold]

    Example: [bold]surgeval studio videos/ --schema prostatd[/bold]

    Example: [bold]surgeval studio set/ --author Ada[/bold] (questions to review, as `surgeval questions review` does)
    """
    from surgeval.studio.server import page_built, serve, set_schema

    if not page_built():
        raise BadInput("studio: found no built page in this installation, expected one: in a checkout `make studio` "
                       "builds it; elsewhere install surgeval again where npm (Node 20) is found")  # fmt: skip
    if demo == (folder is not None):
        raise BadInput("studio: found a folder and the demonstration, or neither, expected one of them")
    root = _demo() if folder is None else folder
    if token is not None and no_token:
        raise BadInput("studio: --token and --no-token exclude each other; give one of them")
    # Ctrl-C is heard before anybody is told that there is something to end.
    with _asked_to_end() as end, serve(
        root, author=author or login_name(), database=database, host=host, port=port, token=token,
        require_token=not no_token, names=name or (), detectors=detector or (), fps=fps,
    ) as running:  # fmt: skip
        current = set_schema(running.project, schema) if schema is not None else None
        if current is not None:
            rich_console().print(f"the labels here go by the schema {current}, which stays; the page's menu "
                                 "switches it (Label schema)", soft_wrap=True, markup=False)  # fmt: skip
        if running.project.folder != root.absolute():
            rich_console().print(visible(f"opened {running.project.folder}, which holds the films of {root}"),
                            soft_wrap=True, markup=False)  # fmt: skip
        for reason in running.project.skipped:
            typer.echo(visible(f"warning: left out: {reason}"), err=True)
        if no_token:
            typer.echo("warning: no token: every account on this machine can read and edit this project", err=True)
        rich_console().print(f"the studio is at {running.entry}", soft_wrap=True, markup=False)
        rich_console().print("every edit is stored at once; Ctrl-C ends the studio")
        with _open_in_browser(running.entry, running.project.folder) if browser else nullcontext():
            while not end.wait(0.5):
                pass


@contextmanager
def _open_in_browser(address: str, folder: Path) -> Iterator[None]:
    """Open an address in the browser through a file that only this account can read.

    Other accounts can read command lines, and with them the address that a browser is started with. The file is written
    to the project's folder if possible: browsers in a sandbox (snap) cannot read temporary files.
    """
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(address)}">'
    try:
        number, name = tempfile.mkstemp(".html", "open-studio-", folder)
    except OSError:
        number, name = tempfile.mkstemp(".html", "open-studio-")
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(page)
    try:
        webbrowser.open(Path(name).absolute().as_uri())
        yield
    finally:
        with suppress(OSError):
            Path(name).unlink()


@contextmanager
def _asked_to_end() -> Iterator[threading.Event]:
    """Set by Ctrl-C, or a polite request from outside; also where the parent process made us deaf to Ctrl-C."""
    end = threading.Event()
    before = {number: signal.signal(number, lambda *_: end.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _demo() -> Path:
    require_models("the studio's demonstration")
    from surgeval.studio.demo import make_demo

    with phases():
        return make_demo(Path("studio-demo"))
