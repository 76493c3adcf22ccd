"""`troth validate`: everything that is wrong, without running anything."""

import json

import pytest

from troth.cli import app


@pytest.fixture
def troth(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        code = app.run(argv)
        return code, *capsys.readouterr()

    return run


def test_validate_tells_every_problem_of_every_file(troth, tmp_path):
    """Exit 2 where there is one; JSON for machines; `--no-import` leaves the functions alone."""
    (tmp_path / "a.yaml").write_text("troth: 1\nname: a\nsteps: [{id: x, slep: 1s}]\n", encoding="utf-8")
    (tmp_path / "b.yaml").write_text("troth: 1\nname: b\nsteps: [{id: x, function: 'nosuch:f'}]\n", encoding="utf-8")
    code, out, _ = troth("validate", "a.yaml", "b.yaml", "c.yaml")
    assert code == 2
    assert "a.yaml:3:17: unknown key `slep`" in out
    assert "b.yaml:3:28: there is no module 'nosuch'" in out
    assert "'c.yaml' does not exist" in out
    told = json.loads(troth("validate", "--json", "a.yaml")[1])
    assert (told["valid"], told["problems"][0]["line"], told["problems"][0]["advice"]) == (
        False,
        3,
        "Did you mean `sleep`?",
    )
    code, out, _ = troth("validate", "--no-import", "b.yaml")
    assert (code, out) == (0, "b.yaml: b, 1 step, valid; the functions it names were not checked\n")
