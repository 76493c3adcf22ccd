"""Fixes are applied until nothing is left to do, and no file is touched."""

import re

import pytest

from troth.analysis.findings import Edit, Finding, Fix, Span
from troth.analysis.fix.settle import settle, settle_in_stages


def finding(path: str, edits: list[Edit], rule: str = "trial") -> Finding:
    return Finding("TR999", rule, Span(path, 1, 1, 1, 1), "a trial", "certain", fix=Fix("try", "sure", tuple(edits)))


class Rewriting:
    """Finds every match of a pattern and offers to replace it, as a rule of our own would."""

    def __init__(self, root, pattern: str, replacement: str):
        self.root, self.pattern, self.replacement = root, pattern, replacement
        self.looks = 0

    def __call__(self, overlay):
        self.looks += 1
        found = []
        for path in sorted(p.name for p in self.root.glob("*.py")):
            text = overlay.get(path, (self.root / path).read_bytes()).decode()
            found += [
                finding(path, [Edit(path, m.start(), m.end(), m.expand(self.replacement))])
                for m in re.finditer(self.pattern, text)
            ]
        return found


@pytest.fixture
def root(tmp_path):
    (tmp_path / "a.py").write_bytes(b"save()\r\nsave()\r\n")
    (tmp_path / "b.py").write_bytes("# é\nsave()\n".encode())
    return tmp_path


def test_everything_is_applied_and_nothing_is_written(root):
    """Two files, three findings, one round and a look that finds it settled."""
    before = {path.name: path.read_bytes() for path in root.iterdir()}
    look = Rewriting(root, r"(?<!await )save\(\)", "await save()")
    settled = settle(root, look, lambda _: True)
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before
    assert [(change.path, change.after) for change in settled.changes] == [
        ("a.py", b"await save()\r\nawait save()\r\n"),
        ("b.py", "# é\nawait save()\n".encode()),
    ]
    assert (len(settled.before), len(settled.after), len(settled.applied), look.looks) == (3, 0, 3, 2)


def test_only_what_is_wanted(root):
    """A finding that is not wanted stays, and is still there afterwards."""
    look = Rewriting(root, r"(?<!await )save\(\)", "await save()")
    settled = settle(root, look, lambda one: one.span.path == "b.py")
    assert [change.path for change in settled.changes] == ["b.py"]
    assert len(settled.after) == 2


def test_one_repair_makes_room_for_another(root):
    """Overlapping fixes are applied one after the other, each on the text that the one before left.

    Of the three findings one is repaired by the fix of another: it counts, as it did in the first look.
    """

    def look(overlay):
        text = overlay.get("a.py", (root / "a.py").read_bytes()).decode()
        whole = re.match(r"save\(\)\r\nsave\(\)", text)
        found = [finding("a.py", [Edit("a.py", m.start(), m.start() + 4, "load")]) for m in re.finditer("save", text)]
        return [finding("a.py", [Edit("a.py", 0, whole.end(), "save()\r\npass")]), *found] if whole else found

    settled = settle(root, look, lambda _: True)
    assert settled.changes[0].after == b"load()\r\npass\r\n"
    assert len(settled.applied) == len(settled.before) == 3


def test_a_fix_that_breaks_the_file_is_left_out_and_named(root):
    """The others are applied all the same."""

    def look(overlay):
        text = overlay.get("a.py", (root / "a.py").read_bytes()).decode()
        found = [finding("a.py", [Edit("a.py", 0, 0, "((")], "broken")]
        if "load" not in text:
            found.append(finding("a.py", [Edit("a.py", 8, 12, "load")], "good"))
        return found

    settled = settle(root, look, lambda _: True)
    assert [one.rule for one in settled.applied] == ["good"]
    assert [(one.rule, "a.py" in reason) for one, reason in settled.refused] == [("broken", True)]
    assert settled.changes[0].after == b"save()\r\nload()\r\n"


def test_a_circle_comes_to_an_end(root):
    """Two rules that undo each other cannot keep us forever; neither is applied, and that is told."""

    def flip(overlay):
        text = overlay.get("a.py", (root / "a.py").read_bytes()).decode()
        new = "load" if text.startswith("save") else "save"
        return [finding("a.py", [Edit("a.py", 0, 4, new)])]

    settled = settle(root, flip, lambda _: True)
    assert (settled.changes, settled.applied) == ((), ())
    assert [reason for _, reason in settled.refused] == ["its fixes never settle"]


def told(code: str, line: int, subject: str, edits: list[Edit], symbol: str = "main") -> Finding:
    fix = Fix(f"repair {subject}", "sure", tuple(edits)) if edits else None
    return Finding(code, "trial", Span("a.py", line, 1, line, 1), "a trial", "certain", (), fix, symbol, subject)


@pytest.mark.parametrize(
    ("fresh", "left"),
    [
        pytest.param(told("TR401", 1, "save", []), b"save()\r\nload()\r\n", id="about the call that was repaired"),
        pytest.param(told("TR401", 9, "other", [], "elsewhere"), b"save()\r\nload()\r\n", id="in another function"),
        pytest.param(
            told("TR201", 9, "other", [], "elsewhere"),
            b"await save()\r\nload()\r\n",
            id="a call that was lost in another function before, for which the await is evidence",
        ),
        pytest.param(told("TR101", 2, "load", []), b"await save()\r\nload()\r\n", id="brought to light by the await"),
        pytest.param(told("TR301", 9, "x", [], "x"), b"await save()\r\nload()\r\n", id="no loss of a call"),
        pytest.param(told("TR801", 9, "row", [], "x"), b"await save()\r\nload()\r\n", id="aftermath by its family"),
    ],
)
def test_a_fix_that_brings_a_new_finding_is_taken_back(root, fresh, left):
    """What it causes is never written, the others are applied all the same; what it only shows may stay."""

    def look(overlay):
        text = overlay.get("a.py", (root / "a.py").read_bytes()).decode()
        found = [fresh] if "await save" in text else [told("TR101", 1, "save", [Edit("a.py", 0, 0, "await ")])]
        at = text.rindex("save()")
        return [*found, told("TR106", 20, "second", [Edit("a.py", at, at + 4, "load")], "far")] if at > 6 else found

    settled = settle(root, look, lambda _: True)
    assert settled.changes[0].after == left
    is_refused = not left.startswith(b"await")
    assert [one.subject for one, _ in settled.refused] == (["save"] if is_refused else [])
    assert settled.aftermath == (() if is_refused else (fresh,))
    assert all(fresh.code in why and f"a.py:{fresh.span.line}" in why for _, why in settled.refused)


def test_nothing_to_do(root):
    """No change, one look."""
    look = Rewriting(root, "nowhere", "")
    settled = settle(root, look, lambda _: True)
    assert (settled.changes, settled.applied, look.looks) == ((), (), 1)


class Planned:
    """Finds `bad N` in a file, offers to make it `good N`, and finds damage where the culprit was repaired."""

    def __init__(self, root, culprit: int):
        self.root, self.culprit = root, culprit

    def __call__(self, overlay):
        text = overlay.get("a.py", (self.root / "a.py").read_bytes()).decode()
        found = []
        for match in re.finditer(r"bad(\d)", text):
            line = text[: match.start()].count("\n") + 1
            edit = Edit("a.py", match.start(), match.end(), f"good{match[1]}")
            safety = "sure" if int(match[1]) % 2 else "likely"
            found.append(
                Finding("TR101", "x", Span("a.py", line, 1, line, 2), "m", "certain", fix=Fix("try", safety, (edit,)))
            )
        if f"good{self.culprit}" in text:
            found.append(Finding("TR102", "y", Span("a.py", 1, 1, 1, 2), "damage", "certain", subject="new"))
        return found


@pytest.mark.parametrize("culprit", range(1, 6))
def test_only_the_repair_that_did_the_damage_is_taken_back(tmp_path, culprit):
    """Each of the five is the same finding in the same function; one of them is the culprit, wherever it stands."""
    (tmp_path / "a.py").write_text("".join(f"bad{n}\n" for n in range(1, 6)))
    settled = settle(tmp_path, Planned(tmp_path, culprit), lambda one: one.fix is not None)
    (change,) = settled.changes
    expected = "".join(f"{'bad' if n == culprit else 'good'}{n}\n" for n in range(1, 6))
    assert change.after.decode() == expected
    assert len(settled.refused) == 1


def test_as_few_as_possible_are_taken_back_if_only_several_together_do_damage(tmp_path):
    """Nine repairs in one function, and a finding that is there once seven of them are done."""
    (tmp_path / "a.py").write_text("".join(f"bad{n}\n" for n in range(1, 10)))

    def look(overlay):
        text = overlay.get("a.py", (tmp_path / "a.py").read_bytes()).decode()
        found = [one for one in Planned(tmp_path, 0)(overlay) if one.fix is not None]
        damage = Finding("TR401", "y", Span("a.py", 1, 1, 1, 2), "damage", "certain", subject="new")
        return [*found, damage] if text.count("good") > 6 else found

    settled = settle(tmp_path, look, lambda one: one.fix is not None)
    (change,) = settled.changes
    assert 4 <= change.after.decode().count("good") <= 6
    assert not [one for one in settled.after if one.code == "TR401"]


@pytest.mark.parametrize("culprit", [2, 4])
def test_a_further_stage_takes_nothing_back(tmp_path, culprit):
    """What is sure is there before anything likely is tried."""
    (tmp_path / "a.py").write_text("".join(f"bad{n}\n" for n in range(1, 6)))
    stages = [lambda one: one.fix is not None and one.fix.safety == "sure", lambda one: one.fix is not None]
    settled = settle_in_stages(tmp_path, Planned(tmp_path, culprit), stages)
    (change,) = settled.changes
    assert change.before.decode() == "".join(f"bad{n}\n" for n in range(1, 6))
    assert change.after.decode() == "".join(f"{'bad' if n == culprit else 'good'}{n}\n" for n in range(1, 6))
    assert len(settled.applied) == 4
