"""Serve runs, conversations and promises over HTTP until somebody ends it."""

import argparse
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.stores import find_value, is_other_store, shown, store_of
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.server.server import Server

__all__ = ["COMMAND"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth serve`."""
    parser.add_argument(
        "app",
        nargs="?",
        metavar="MODULE:NAME",
        help="a `Server`, a `Runtime`, or a function that makes one; without it, the workflows of a folder",
    )
    parser.add_argument("--workflows", metavar="FOLDER", help="serve the workflows (*.yaml) in this folder")
    parser.add_argument(
        "--store",
        metavar="FILE",
        help="the file, or the `postgresql://` address, of the store (default: $TROTH_STORE or .troth/runs.db)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8700, help="the port, 0 for any that is free (default: 8700)")
    parser.add_argument("--no-key", action="store_true", help="require no key; on loopback only")
    parser.add_argument("--open", action="store_true", dest="open_page", help="open the pages in a browser")
    parser.add_argument("--no-pages", action="store_true", help="serve only the API, without the pages")
    parser.add_argument(
        "--drain", type=float, metavar="SECONDS", help="how long turns may run after SIGTERM (default: 30)"
    )
    parser.add_argument(
        "--keep-talks",
        type=float,
        metavar="DAYS",
        help="delete the messages of a conversation this many days after its last entry (default: never)",
    )


def run(args: argparse.Namespace) -> int:
    """Find what is to be served, and serve it."""
    needs_server()
    if not 0 <= args.port <= 65535:
        raise MisuseError(f"`--port {args.port}` is not a port. The server was not started. Give a number up to 65535.")
    if args.drain is not None and not 0 <= args.drain < float("inf"):
        raise MisuseError(f"`--drain {args.drain:g}` is not a duration; give a number of seconds.")
    if args.keep_talks is not None and not 0 < args.keep_talks < float("inf"):
        raise MisuseError(f"`--keep-talks {args.keep_talks:g}` is not a duration; give a number of days above 0.")
    from troth.bridge import run as bridge_run

    bridge_run(_serve(_server(args), args))
    sys.stderr.write("The server was stopped. Its unfinished work is recorded; the next server resumes it.\n")
    return Exit.CLEAN


async def _serve(server: "Server", args: argparse.Namespace) -> None:
    async with server.runtime:  # closed on the loop that its runs are on: they are let go of before it ends
        await server.aserve(args.host, args.port, open_page=args.open_page)


def needs_server() -> None:
    """Refuse to go on without the parts that serve, and say how to get them."""
    missing = [name for name in ("fastapi", "uvicorn", "websockets", "yaml") if importlib.util.find_spec(name) is None]
    if missing:
        raise MisuseError(
            f"This command needs {', '.join(missing)}, which the base install leaves out.\nNothing was done.\n"
            "Install it with `pip install 'troth[server]'`."
        )


def _server(args: argparse.Namespace) -> "Server":
    from troth.runtime.assemble import Runtime
    from troth.server.limits import Limits
    from troth.server.server import Server

    found = _app(args) if args.app else None
    if isinstance(found, Server):
        is_set = [
            args.workflows,
            args.store,
            args.no_key,
            args.no_pages,
            args.drain is not None,
            args.keep_talks is not None,
        ]
        if any(is_set):
            raise MisuseError(
                f"`{args.app}` is a `Server`, which has its own settings. "
                "It was not started.\n"
                "Leave `--workflows`, `--store`, `--no-key`, `--no-pages`, `--drain` and `--keep-talks` out."
            )
        return found
    if isinstance(found, Runtime) and args.store and is_other_store(args.store, found):
        raise MisuseError(
            f"`--store {shown(args.store)}` is not the store of the runtime of `{args.app}`: that is "
            f"{found.store.name!r}. The server was not started.\nLeave `--store` out."
        )
    workflows = _workflows(args)
    runtime = found if isinstance(found, Runtime) else Runtime(store_of(args), in_process=False)
    limits = Limits(
        drain=30.0 if args.drain is None else args.drain,
        keep=None if args.keep_talks is None else args.keep_talks * 86_400,
    )
    return Server(runtime, workflows=workflows, keys=not args.no_key, limits=limits, pages=not args.no_pages)


def _app(args: argparse.Namespace) -> object:
    from troth.bridge import run as bridge_run
    from troth.runtime.assemble import Runtime
    from troth.server.server import Server

    app = find_value(args.app, "server")
    if not isinstance(app, Server | Runtime) and callable(app) and not isinstance(app, type):
        app = app()
        if inspect.isawaitable(app):
            app = bridge_run(app)
    if not isinstance(app, Server | Runtime):
        raise MisuseError(
            f"`{args.app}` leads to a value of type `{type(app).__name__}`. The server was not started.\n"
            "Name a `Server`, a `Runtime`, or a function without arguments that returns one."
        )
    return app


def _workflows(args: argparse.Namespace) -> list[Path]:
    """The workflows of the folder; of the current one where nothing else is named."""
    if args.workflows is None and args.app:
        return []
    folder = Path(args.workflows or ".")
    if not folder.is_dir():
        raise MisuseError(f"There is no folder {str(folder)!r}. The server was not started.")
    files = sorted({*folder.glob("*.yaml"), *folder.glob("*.yml")})
    if not files:
        raise MisuseError(
            f"There is no workflow (*.yaml) in {str(folder)!r}, so there is nothing to serve. It was not started.\n"
            "Name a folder with `--workflows`, or a `Server` as `module:name`; `troth init` writes a first workflow."
        )
    return files


COMMAND = Command(
    summary="serve runs, conversations and promises over HTTP",
    description=(
        "Serves the workflows of a folder, or of a `Server` or `Runtime` in Python, over HTTP, server-sent\n"
        "events and WebSocket. Clients need a key (`troth keys create`), except with `--no-key`, on loopback only.\n"
        "SIGTERM stops it: running turns get `--drain` seconds; the next server resumes what is unfinished."
    ),
    examples=(
        Example("troth serve --no-key", "the workflows of this folder, on port 8700, for this machine alone"),
        Example("troth serve --no-key --open", "the same, and its pages in a browser: what runs, what failed and why"),
        Example(
            "troth serve shop:server --host 0.0.0.0",
            "a server defined in Python, for other machines; clients need a key",
        ),
        Example("troth serve --workflows flows --port 0 --no-key", "on any port that is free; its number is printed"),
    ),
    add_arguments=add_arguments,
    run=run,
)
