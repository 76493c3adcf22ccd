"""Settings: found upwards, read exactly, refused with their place."""

import json
import re
from importlib import resources

import jsonschema
import pytest

from troth.analysis.selection import Selection, check_names
from troth.analysis.settings import KEYS, Patterns, find_settings, read_settings
from troth.errors import MisuseError

RULES = {"TR101": "unawaited-coroutine", "TR102": "assigned-coroutine", "TR201": "left-behind"}


def test_every_key_is_read(tmp_path):
    """What the table says arrives, with paths and patterns relative to its file."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.troth]\nselect = ["TR1"]\nignore = ["TR102"]\nexclude = ["gen"]\nconfidence = "certain"\n'
        'baseline = "known.json"\npython = ".env"\nsource-roots = ["py"]\ncache-dir = ".c"\nforce-exclude = true\n'
        "foreign-comments = false\n"
        '[tool.troth.per-file-ignores]\n"tests/**" = ["TR101"]\n'
    )
    found = read_settings(tmp_path / "pyproject.toml")
    assert found.select == ("TR1",)
    assert found.ignore == ("TR102",)
    assert found.exclude == Patterns(tmp_path, ("gen",))
    assert found.per_file_ignores == ((Patterns(tmp_path, ("tests/**",)), ("TR101",)),)
    assert found.confidence == "certain"
    assert found.baseline == tmp_path / "known.json"
    assert found.python == ".env"
    assert found.source_roots == (tmp_path / "py",)
    assert found.cache_dir == tmp_path / ".c"
    assert found.force_exclude is True
    assert found.foreign_comments is False


def test_the_nearest_file_that_has_a_key_wins(tmp_path):
    """A package may differ in one thing and follow the project in the rest."""
    (tmp_path / "p").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.troth]\nselect = ["TR1"]\nbaseline = "b.json"\n')
    (tmp_path / "p/troth.toml").write_text('select = ["TR2"]\n')
    found = find_settings(tmp_path / "p")
    assert found.select == ("TR2",)
    assert found.baseline == tmp_path / "b.json"


def test_troth_toml_stands_before_pyproject(tmp_path):
    """Where both are in one folder, one of them is meant."""
    (tmp_path / "pyproject.toml").write_text('[tool.troth]\nselect = ["TR1"]\n')
    (tmp_path / "troth.toml").write_text('confidence = "certain"\n')
    found = find_settings(tmp_path)
    assert (found.select, found.confidence) == (None, "certain")


@pytest.mark.parametrize(
    ("name", "text", "line", "says"),
    [
        pytest.param(
            "pyproject.toml", '[project]\nname="x"\n[tool.troth]\nselct = ["TR1"]\n', 4, "'select'", id="near"
        ),
        pytest.param("pyproject.toml", "[tool.troth]\nzzz = 1\n", 2, "The settings are", id="nothing near"),
        pytest.param("troth.toml", "[tool.troth]\nselect = []\n", 1, "Remove `[tool.troth]`", id="a table too many"),
        pytest.param("troth.toml", "\n\nconfidnce = 'certain'\n", 3, "'confidence'", id="troth.toml"),
        pytest.param("pyproject.toml", "[tool.troth.per-file-ignore]\n", 1, "'per-file-ignores'", id="a table"),
        pytest.param("pyproject.toml", "[tool]\ntroth.selekt = []\n", 2, "'select'", id="a dotted key"),
        pytest.param("pyproject.toml", '[tool.troth]\nselect = "TR1"\n', 2, "list of strings", id="a text for a list"),
        pytest.param("pyproject.toml", '[tool.troth]\nconfidence = "sure"\n', 2, "certain", id="no such confidence"),
        pytest.param("pyproject.toml", "[tool.troth]\nforce-exclude = 1\n", 2, "true", id="a number for yes"),
        pytest.param(
            "pyproject.toml",
            '[tool.x]\n"a.py" = 1\n[tool.troth.per-file-ignores]\n"b.py" = []\n"a.py" = "TR1"\n',
            5,
            "list of strings",
            id="inside a table",
        ),
        pytest.param(
            "troth.toml", '[per-file-ignores]\n"a/**" = 1\n', 2, "list of strings", id="a table of troth.toml"
        ),
        pytest.param("pyproject.toml", "[tool.troth]\nselect = [\n", 2, "not TOML", id="broken TOML"),
    ],
)
def test_wrong_settings_are_refused_with_their_place(name, text, line, says, tmp_path):
    """The message starts with `file:line`, and names a neighbour only if there is one."""
    (tmp_path / name).write_text(text)
    with pytest.raises(MisuseError) as caught:
        read_settings(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}:{line}: ")
    assert says in str(caught.value)
    assert ("Did you mean" in str(caught.value)) == bool(re.search(r"'\w", says))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"\xff\xfe", "not UTF-8, but UTF-16", id="nothing but a mark"),
        pytest.param('[tool.troth]\nselect = ["TR1"]\n'.encode("utf-16"), "not UTF-8, but UTF-16", id="utf-16"),
        pytest.param('[tool.troth]\n# é\nselect = ["TR1"]\n'.encode("latin-1"), "not UTF-8, and TOML", id="latin-1"),
    ],
)
def test_settings_that_are_not_utf_8_are_refused(data, says, tmp_path):
    """Nobody's settings are dropped without a word."""
    (tmp_path / "pyproject.toml").write_bytes(data)
    with pytest.raises(MisuseError, match=says):
        find_settings(tmp_path)


def test_other_tools_tables_are_left_alone(tmp_path):
    """A file that does not speak to us may say anything."""
    (tmp_path / "pyproject.toml").write_text('[tool.other]\nselct = ["x"]\n# troth\n')
    assert read_settings(tmp_path / "pyproject.toml") is None


def schema():
    return json.loads(resources.files("troth.analysis").joinpath("settings.schema.json").read_text())


def test_the_schema_knows_the_same_keys():
    """Editors and Troth itself agree about what may be written."""
    jsonschema.Draft7Validator.check_schema(schema())
    assert set(schema()["properties"]) == set(KEYS)


@pytest.mark.parametrize(
    ("table", "is_right"),
    [
        pytest.param({"select": ["TR1", "unawaited-coroutine"], "confidence": "likely"}, True, id="right"),
        pytest.param({"per-file-ignores": {"tests/**": ["TR101"]}}, True, id="per file"),
        pytest.param({"selct": []}, False, id="unknown key"),
        pytest.param({"select": "TR1"}, False, id="a text for a list"),
        pytest.param({"confidence": "sure"}, False, id="no such confidence"),
        pytest.param({"select": ["E501"]}, False, id="another tool's code"),
    ],
)
def test_the_schema_takes_and_refuses(table, is_right):
    """The schema can fail."""
    assert jsonschema.Draft7Validator(schema()).is_valid(table) is is_right


@pytest.mark.parametrize(
    ("select", "ignore", "taken"),
    [
        pytest.param([], [], {"TR101", "TR102", "TR201"}, id="all by default"),
        pytest.param(["TR1"], [], {"TR101", "TR102"}, id="a family"),
        pytest.param(["TR1"], ["TR102"], {"TR101"}, id="less one"),
        pytest.param(["TR101"], ["TR1"], {"TR101"}, id="the exact one wins"),
        pytest.param([], ["TR"], set(), id="none"),
        pytest.param(["left-behind"], [], {"TR201"}, id="by name"),
        pytest.param(["TR"], ["unawaited-coroutine"], {"TR102", "TR201"}, id="less one by name"),
        pytest.param(["TR101"], ["TR101"], set(), id="a draw is refused"),
    ],
)
def test_selection(select, ignore, taken):
    """The more exact word decides."""
    chosen = Selection(tuple(select), tuple(ignore))
    assert {code for code, name in RULES.items() if chosen.takes(code, name)} == taken


@pytest.mark.parametrize(
    ("word", "says"),
    [
        pytest.param("unawaited-corutine", "Did you mean 'unawaited-coroutine'?", id="near"),
        pytest.param("nosuch", "Run `troth explain` to list the rules.", id="nothing near"),
        pytest.param("TR9", "Run `troth explain` to list the rules.", id="no such family"),
        pytest.param("E501", "Run `troth explain` to list the rules.", id="another tool's"),
    ],
)
def test_a_rule_that_does_not_exist_is_refused(word, says):
    """A neighbour is named only if it is near."""
    with pytest.raises(MisuseError, match="--select") as caught:
        check_names([word], RULES, "`--select`")
    assert str(caught.value).endswith(says)
