"""Choose what runs a coroutine where async ends: the library that the project waits with."""

import re

from troth.analysis.recolor.project.workspace import RecolorWorkspace

__all__ = ["usual_runner"]

_IMPORTED = re.compile(r"^[ \t]*(?:import|from)[ \t]+(asyncio|anyio|trio)\b", re.MULTILINE)


def usual_runner(workspace: RecolorWorkspace, *, auto: bool = False) -> str:
    """`trio.run` in a project that waits with trio alone: no loop of asyncio can run what waits for trio.

    Otherwise `asyncio.run`, or with `auto` what works in a running loop too.
    """
    libraries = {
        match[1] for view in workspace.views.values() if view.kind == "code" for match in _IMPORTED.finditer(view.text)
    }
    if libraries == {"trio"}:
        return "trio.run"
    return "bridge.run" if auto else "asyncio.run"
