"""Every name in a correction is one that the tables know."""

import tomllib
from pathlib import Path

import pytest

from tools.same.troth import findings_in_program
from troth.analysis import knowledge
from troth.analysis.knowledge import corrections
from troth.analysis.knowledge.corrections import Correction, corrected, correction
from troth.analysis.semantics.infer import framework_parameters

FOLDER = Path(corrections.__file__).with_name("corrections")


def names():
    """The dotted names of classes in all corrections."""
    for library in sorted(corrected()):
        data = correction(library)
        for name in (*data.parameters.values(), *(cls for pair in data.pairs.values() for cls in pair), *data.pairs):
            yield pytest.param(name, id=f"{library}: {name}")
        for name in (*data.type_arguments, *data.results):
            yield pytest.param(name.rpartition(".")[0], id=f"{library}: {name}")
        for name in data.results.values():
            yield pytest.param(name, id=f"{library}: {name}")


@pytest.mark.parametrize("name", list(names()))
def test_the_tables_know_it(name):
    """A name that moved in its library would silently correct nothing."""
    assert knowledge.find(name) is not None


def test_an_edition_names_functions_that_are_async_now():
    """What is plain in another edition is async in the one of the tables."""
    edition = correction("discord.Client").edition
    assert edition is not None
    assert edition.sync <= knowledge.load("discord").meaning("c") | {"cog_unload"}


def test_a_library_without_a_file_has_no_corrections():
    """Nothing is read for it."""
    assert correction("json.dumps") == correction("no_such_library")


@pytest.mark.parametrize("library", sorted(corrected()))
def test_every_table_of_a_file_is_read(library):
    """A table whose name is misspelled would correct nothing, and nobody would notice."""
    assert set(tomllib.loads((FOLDER / f"{library}.toml").read_text("utf-8"))) <= set(Correction._fields)


@pytest.mark.parametrize("library", sorted(corrected()))
def test_what_is_corrected_has_the_name_of_its_definition(library):
    """`trio.open_memory_channel` is only an import of `trio._channel.open_memory_channel`: it would correct nothing."""
    data = correction(library)
    classes = [*data.pairs, *(name.rpartition(".")[0] for name in (*data.type_arguments, *data.results))]
    assert classes == [knowledge.find(name).name for name in classes]


@pytest.fixture
def own_corrections(tmp_path, monkeypatch):
    """A folder of corrections in place of ours."""
    caches = (corrections.corrected, corrections._read, framework_parameters._libraries)
    monkeypatch.setattr(corrections, "_FOLDER", tmp_path)
    for cache in caches:
        cache.cache_clear()
    yield tmp_path
    for cache in caches:
        cache.cache_clear()


def test_parameters_of_a_new_library(own_corrections):
    """A new file is enough: nothing else lists the libraries."""
    program = {"case.py": b"import httpx\nasync def load(client):\n    client.get('x')\n"}
    assert "TR101" not in {row["code"] for row in findings_in_program(program)}
    (own_corrections / "httpx.toml").write_text('[parameters]\nclient = "httpx.AsyncClient"\n')
    corrected.cache_clear()
    framework_parameters._libraries.cache_clear()
    assert "TR101" in {row["code"] for row in findings_in_program(program)}
