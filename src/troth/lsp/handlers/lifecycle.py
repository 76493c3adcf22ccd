"""Begin and end with the client, and take its settings and folders."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Mapping

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.uris import from_fs_path

from troth import __version__
from troth.lsp.handlers.pulled_diagnostics import serve_pulls
from troth.lsp.protocol.client import client_of
from troth.lsp.protocol.settings import parse
from troth.lsp.server import TrothServer
from troth.lsp.sessions.documents import file_of

__all__ = ["serve_folders", "serve_lifecycle"]

_log = logging.getLogger("troth.lsp")
_WATCHED = ("**/*.py", "**/*.pyi", "**/*.ipynb", "**/pyproject.toml", "**/troth.toml", "**/.gitignore")
_PARENT_EVERY = 5.0  # seconds between two looks whether the editor is still there


def serve_lifecycle(server: TrothServer) -> None:
    """Hear how the client begins and ends."""
    feature = server.feature

    @feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.client = client_of(params)
        encoding = server.protocol.workspace.position_encoding
        server.documents.encoding = str(getattr(encoding, "value", encoding))
        server.settings, problems = parse(_section(params.initialization_options))
        folders = [folder.uri for folder in params.workspace_folders or ()]
        root = params.root_uri or (from_fs_path(params.root_path) if params.root_path else None)
        if not folders and root:
            folders = [root]
        name = params.client_info.name if params.client_info else "a client without a name"
        _log.info("troth %s for %s; folders: %s; %s", __version__, name, folders, server.client)
        for problem in problems:
            _log.warning("%s", problem)
        server.workspace_of_folders.settings = server.settings
        for uri in folders:
            server.workspace_of_folders.add(uri)
        if server.client.pulls:
            serve_pulls(server)

    @feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        if server.process_id and sys.platform != "win32":  # there `os.kill` would not ask but act
            server.later(_leave_with(server.process_id))
        if server.client.configures:
            await _configure(server)
        server.workspace_of_folders.start()
        await _register(server)

    @feature(types.SHUTDOWN)
    def shutdown(_params: None) -> None:
        server.has_left = True
        server.workspace_of_folders.stop()


def serve_folders(server: TrothServer) -> None:
    """Hear of files that change on disk, of folders and of settings."""
    feature = server.feature

    @feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        for change in params.changes:
            path = file_of(change.uri)
            is_listed = change.type != types.FileChangeType.Changed or not change.uri.endswith(
                (".py", ".pyi", ".ipynb")
            )
            if is_listed:
                server.workspace_of_folders.listed_anew(path)
            else:
                server.workspace_of_folders.changed(path)

    @feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(params: types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            server.publisher.remove(server.workspace_of_folders.remove(folder.uri))
        for folder in params.event.added:
            server.workspace_of_folders.add(folder.uri)
        server.workspace_of_folders.start()

    @feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(params: types.DidChangeConfigurationParams) -> None:
        if server.client.configures:
            await _configure(server)
        else:
            _take_settings(server, _section(params.settings))


def _section(options: object) -> object:
    """Our section of what a client sends: some send it alone, others inside all their settings."""
    if isinstance(options, Mapping) and "troth" in options:
        return options["troth"]
    return options if isinstance(options, Mapping) else None


async def _configure(server: TrothServer) -> None:
    params = types.ConfigurationParams([types.ConfigurationItem(section="troth")])
    try:
        answer = await server.workspace_configuration_async(params)
    except JsonRpcException as problem:
        _log.warning("the client did not send its settings: %s", problem)
        return
    if answer and answer[0] is not None:
        _take_settings(server, answer[0])


def _take_settings(server: TrothServer, section: object) -> None:
    settings, problems = parse(section)
    for problem in problems:
        _log.warning("%s", problem)
        server.window_log_message(types.LogMessageParams(types.MessageType.Warning, problem))
    if settings == server.settings:
        return
    before, server.settings = server.settings, settings
    server.workspace_of_folders.set_up(settings)
    server.publisher.again()
    if settings.lens != before.lens and server.client.refreshes_lens:
        server.later(server.workspace_code_lens_refresh_async(None))
    if settings.inlay != before.inlay and server.client.refreshes_hints:
        server.later(server.workspace_inlay_hint_refresh_async(None))


async def _register(server: TrothServer) -> None:
    """Ask to be told of files that change on disk, and of settings."""
    watchers: list[types.FileSystemWatcher] = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
    registrations = []
    if server.client.watches:
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        registrations.append(types.Registration("troth.watched", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    if server.client.registers_settings:
        registrations.append(
            types.Registration("troth.settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, {"section": "troth"})
        )
    if registrations:
        with contextlib.suppress(JsonRpcException):
            await server.client_register_capability_async(types.RegistrationParams(registrations))


async def _leave_with(process: int) -> None:
    """End when the editor has ended without a word; its pipe may be held open by somebody else."""
    while True:
        await asyncio.sleep(_PARENT_EVERY)
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            _log.warning("the editor (process %d) is gone", process)
            os._exit(1)
        except OSError:
            return
