"""Commands are judged after parsing, paths after resolving."""

import pytest

from troth.errors import MisuseError
from troth.runtime.sessions import Action, Hypervisor, RefusedError, SessionConfig
from troth.runtime.sessions.policy.allowlist import problem_of_command, problem_of_path

KEY = "a key that is only used in tests"
ALLOWED = ["ls", "git status", "/usr/bin/make"]


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls -la /tmp",
        "git status --short",
        "/usr/bin/make all",
        "ls; git status",
        "ls && ls | ls",
        "ls\nls",
        "env LC_ALL=C ls",
        "env -u HOME -i ls",
        "LC_ALL=C ls",
        "sudo -u nobody ls",
        "nice -n 5 ls",
        "timeout -k 1 5 ls",
        "nohup ls",
        "xargs -n 1 ls",
        "sh -c 'ls; git status'",
        "bash -lc ls",
        "env nice sh -c 'timeout 5 ls'",
        "env -S 'ls -l'",
        ["ls", "a; curl x"],
        ["sh", "-c", "ls"],
        "ls 'a;b' \"c|d\"",
    ],
)
def test_allowed(command):
    """Wrapped, chained or quoted: what is started is on the list."""
    assert problem_of_command(command, ALLOWED) is None


@pytest.mark.parametrize(
    "command",
    [
        "curl x",
        "/usr/bin/curl x",
        "/tmp/ls",
        "./ls",
        "make",
        "LS",
        "git push",
        "git",
        "env curl x",
        "env -i A=b curl x",
        "env -S 'curl x'",
        "env '-Scurl x'",
        "sudo bash",
        "sudo -u root curl x",
        "nice -n 5 curl x",
        "timeout 5 curl x",
        "timeout --signal=9 5 curl x",
        "xargs curl",
        "find . | xargs -I {} curl {}",
        "command curl",
        "exec curl",
        "busybox wget x",
        "ls; curl x",
        "ls;curl x",
        "ls&curl x",
        "ls && curl x",
        "ls || curl x",
        "ls | curl x",
        "ls |& curl x",
        "ls\ncurl x",
        "curl;ls",
        "sh -c 'curl x'",
        "sh -c 'ls; curl x'",
        "/bin/sh -c 'curl x'",
        "sh -ec 'curl x'",
        "env sh -c 'sudo curl x'",
        "sh script.sh",
        "bash",
        "bash -s",
        "ls | sh",
        "sh -c",
        "ls $(curl x)",
        "ls `curl x`",
        "ls <(curl x)",
        "ls > /etc/passwd",
        "ls < /etc/shadow",
        "ls 2>&1",
        "(curl x)",
        "{ curl x; }",
        "$SHELL -c ls",
        "l? x",
        "eval curl x",
        ". script",
        "A=b",
        "'unfinished",
        "ls \0",
        "",
        "   ",
        "env",
        "timeout 5",
        [],
        ["ls", 3],
        None,
        3,
        "sh -c \"sh -c 'curl x'\"",
    ],
)
def test_refused(command):
    """Something else would be started, or nobody can tell what."""
    assert problem_of_command(command, ALLOWED) is not None


def test_wrapped_for_ever():
    """Ends with a refusal."""
    assert problem_of_command("env " * 50 + "ls", ALLOWED) is not None


def test_paths(tmp_path):
    """Links, `..` and siblings with the same beginning lead out."""
    inside, outside = tmp_path / "data", tmp_path / "data-of-others"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    roots = [str(inside)]
    for path in (inside, inside / "a.txt", inside / "x/../b.txt", f"{inside}//a"):
        assert problem_of_path(str(path), roots) is None
    for path in (
        outside,
        inside / "link/a",
        inside / "..",
        inside / "../data-of-others/a",
        "/etc/passwd",
        "",
        "a\0",
        3,
    ):
        assert problem_of_path(path if isinstance(path, int | str) else str(path), roots) is not None


def test_in_a_session(path, tmp_path, effects):
    """Asked before the act begins, and a refusal is audited."""

    def shell(line, file=None):
        effects.append((line, file))

    actions = [Action("shell", shell, reversibility="partial", command="line", paths=["file"])]
    with Hypervisor(path, actions=actions, audit_key=KEY) as hypervisor:
        config = SessionConfig(commands=["ls"], paths=[str(tmp_path)])
        session = hypervisor.create("ops", config)
        member = hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)
        member.act("shell", line="ls -l", file=str(tmp_path / "x"))
        for line, file, rule in (("env curl", None, "command"), ("ls", "/etc/passwd", "path")):
            with pytest.raises(RefusedError) as refused:
                member.act("shell", line=line, file=file)
            assert refused.value.rule == rule
        assert effects == [("ls -l", str(tmp_path / "x"))]
        assert [row.kind for row in hypervisor.events(session=session)].count("refused") == 2
        bare = hypervisor.create("ops")
        other = hypervisor.join(bare, "a", score=0.8)
        hypervisor.activate(bare)
        with pytest.raises(RefusedError):
            other.act("shell", line="ls")


def test_nothing_inert(path):
    """Limits that no action asks for, and inputs that there are not, are refused at construction."""
    with Hypervisor(path, actions=[Action("look", lambda: 1, read_only=True)], audit_key=KEY) as hypervisor:
        for config in (SessionConfig(commands=["ls"]), SessionConfig(paths=["/srv"])):
            with pytest.raises(MisuseError, match="would never apply"):
                hypervisor.create("ops", config)
        assert hypervisor.count() == 0
    for wrong in ({"command": "line"}, {"paths": ["file"]}):
        with pytest.raises(MisuseError, match="no input"):
            Action("look", lambda: 1, read_only=True, **wrong)
    for wrong in ({"commands": [""]}, {"commands": [3]}, {"paths": ["relative"]}):
        with pytest.raises(MisuseError):
            SessionConfig(**wrong)
