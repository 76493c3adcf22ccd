"""The examples do what they say."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from troth.runtime.sessions import PolicyRequest, RefusedError, SessionConfig

FOLDER = Path(__file__).resolve().parents[3] / "examples/sessions"


def test_three_agents(tmp_path):
    """Killed in mid-saga, undone, and proved by the audit trail."""
    command = [sys.executable, str(FOLDER / "three_agents.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "live while it deletes: ['v2', 'v3']" in done.stdout
    assert "live after the kill: ['v1', 'v2', 'v3']" in done.stdout
    assert "the audit trail is valid" in done.stdout
    assert "undo.done cleaner undo delete v1" in done.stdout


def test_cedar(hypervisor, effects):
    """The same port: allowed, denied and asked as the policies in Cedar say, with their digest in the trail."""
    pytest.importorskip("cedarpy")
    spec = importlib.util.spec_from_file_location("cedar_policy", FOLDER / "cedar_policy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    policy = module.CedarPolicy(module.POLICIES)

    def asked(action, **arguments):
        return policy(PolicyRequest("s", "builder", action, "act", 2, arguments)).word

    assert asked("deploy", release="v3") == "allow"
    assert asked("deploy", release="beta") == "deny"
    assert asked("delete") == "ask"
    assert asked("anything else") == "deny"
    session = hypervisor.create("ops", SessionConfig(policy=policy))
    member = hypervisor.join(session, "builder", score=0.8)
    hypervisor.activate(session)
    with pytest.raises(RefusedError, match="Cedar"):
        member.act("deploy", version=3)
    assert effects == []
    assert policy.digest in hypervisor.events(session=session)[-1].data
