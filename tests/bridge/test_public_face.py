"""What `troth.bridge` exports."""

from troth import bridge


def test_the_public_face_is_frozen():
    """Eleven names, and the exceptions and warnings a user may want to catch."""
    exceptions = {
        name
        for name in bridge.__all__
        if isinstance(getattr(bridge, name), type) and issubclass(getattr(bridge, name), BaseException)
    }
    assert exceptions == {
        "BlockedLoopError",
        "BlockedLoopWarning",
        "DeadlockError",
        "InterpreterExitError",
        "LeftoverTaskWarning",
        "LoopGoneError",
        "NotRunnableError",
        "PortalClosedError",
        "RunTimeoutError",
        "WrongThreadError",
    }
    assert set(bridge.__all__) - exceptions == {
        "Portal",
        "aio",
        "aiterate",
        "call",
        "color_of",
        "enter",
        "explain",
        "iterate",
        "overrides",
        "run",
        "sync",
    }


def test_the_bridge_needs_nothing_but_the_standard_library():
    """anyio, greenback, sniffio, trio and mocks are noticed where they are in use, and never imported."""
    import subprocess
    import sys

    code = "import sys; from troth import bridge; print(sorted(set(sys.modules) & {'anyio', 'greenback', 'sniffio', 'trio', 'uvloop', 'unittest.mock'}))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=30).stdout
        == "[]\n"
    )


def test_explain_says_what_to_do_about_an_unknown_color():
    """A bare mock is UNKNOWN, and the advice names the cure."""
    from unittest.mock import MagicMock

    verdict = bridge.explain(MagicMock())
    assert verdict.color.name == "UNKNOWN"
    assert "spec=" in verdict.advice
    assert "AsyncMock" in verdict.advice


def test_explain_before_the_first_run():
    """Nothing was recorded in a thread that never ran anything."""
    import threading

    seen = []
    thread = threading.Thread(target=lambda: seen.append(bridge.explain(last=True)))
    thread.start()
    thread.join()
    assert seen == [None]
