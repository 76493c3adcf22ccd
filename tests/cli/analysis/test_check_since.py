"""`troth check --since`: what a change has brought, in real repositories."""

import json
import subprocess

import pytest

SYNC_STORE = "class Store:\n    def save(self): ...\n    async def load(self): ...\n"


def found(done):
    return [(one["path"], one["line"]) for one in json.loads(done.out)["findings"]]


def test_a_caller_left_behind_in_an_unchanged_file(project):
    """A method turned async: its caller elsewhere never changed, and is the one that lost its call."""
    project.write({"store.py": SYNC_STORE, "service.py": project.service})
    project.commit()
    project.write({"store.py": project.store})
    done = project.troth("check", "--since", "HEAD", "--output-format", "json")
    assert (done.code, found(done)) == (1, [("service.py", 6)])
    reason = json.loads(done.out)["findings"][0]["reason"][-1]
    assert reason == {
        "text": "`Store.save` changed color since HEAD: it was a plain `def`",
        "path": "store.py",
        "line": 2,
    }
    assert "changed color since HEAD" in project.troth("check", "--since", "HEAD").out


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, [], id="nothing changed"),
        pytest.param({"README.md": "x"}, [], id="no source changed"),
        pytest.param({"service.py": "# shifted\n" * 20}, [], id="lines shifted"),
        pytest.param(
            {"new.py": "import store\n\n\nasync def f(s: store.Store):\n    s.load()\n"},
            [("new.py", 5)],
            id="untracked",
        ),
    ],
)
def test_what_was_there_before_is_not_reported(change, expected, buggy):
    """Old findings stay quiet, whatever else changes."""
    buggy.commit()
    for name, text in change.items():
        buggy.write({name: text + buggy.service if name == "service.py" else text})
    done = buggy.troth("check", "--since", "HEAD", "--output-format", "json")
    assert (found(done), done.code) == (expected, 1 if expected else 0)


def test_renames_and_deletions(buggy):
    """A file that was renamed brings nothing; one that is gone is still understood as it was."""
    buggy.commit()
    buggy.git("mv", "service.py", "moved.py")
    assert found(buggy.troth("check", "--since", "HEAD", "--output-format", "json")) == []
    buggy.write({"moved.py": buggy.service + "    store.load()\n"})
    assert found(buggy.troth("check", "--since", "HEAD", "--output-format", "json")) == [("moved.py", 7)]
    (buggy.root / "moved.py").unlink()
    assert found(buggy.troth("check", "--since", "HEAD", "--output-format", "json")) == []


def test_several_commits_back(project):
    """What was repaired on the way is not reported, what remains is."""
    project.write({"store.py": project.store, "service.py": project.clean})
    project.commit()
    project.write({"service.py": project.service})
    project.commit()
    project.write({"service.py": project.service + "    store.load()\n"})
    project.commit()
    assert found(project.troth("check", "--since", "main~2", "--output-format", "json")) == [
        ("service.py", 6),
        ("service.py", 7),
    ]
    assert found(project.troth("check", "--since", "main~1", "--output-format", "json")) == [("service.py", 7)]


def test_a_comment_taken_away_is_a_change(buggy):
    """The finding it silenced comes with the change."""
    buggy.write({"service.py": buggy.service.replace("save()", "save()  # troth: allow TR101")})
    buggy.commit()
    buggy.write({"service.py": buggy.service})
    assert found(buggy.troth("check", "--since", "HEAD", "--output-format", "json")) == [("service.py", 6)]


def test_the_work_tree_is_not_touched(buggy):
    """No file, no index, no stash is changed by looking back."""
    buggy.commit()
    buggy.write({"service.py": buggy.service + "    store.load()\n"})

    def state():
        run = subprocess.run(
            ["git", "status", "--porcelain=v2", "--branch"], cwd=buggy.root, capture_output=True, check=True
        )
        index = (buggy.root / ".git/index").read_bytes()
        return run.stdout, index, sorted(path.name for path in buggy.root.iterdir())

    before = state()
    assert buggy.troth("check", "--since", "HEAD").code == 1
    assert state() == before


def test_a_project_below_the_top_of_its_repository(buggy):
    """From a folder inside, with a path, the answer is the same."""
    buggy.write({"pk/store.py": buggy.store, "pk/app.py": buggy.clean})
    buggy.commit()
    buggy.write({"pk/app.py": buggy.service})
    done = buggy.troth("check", ".", "--since", "HEAD", "--output-format", "json", cwd="pk")
    assert found(done) == [("pk/app.py", 6)]


@pytest.mark.parametrize("revision", ["nosuch", "--help", "HEAD:service.py", ""])
def test_a_revision_that_does_not_exist(revision, buggy):
    """Exit 2, by name, and git is not given what looks like an option of its own."""
    buggy.commit()
    done = buggy.troth("check", f"--since={revision}")
    assert (done.code, done.out) == (2, "")
    assert "no commit of that name" in done.err
