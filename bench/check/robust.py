"""Does `troth check` come through everything? `python -m bench.check.robust --help` lists what it can be put to.

The standard library of every interpreter at hand; the most used packages of the registry, each downloaded once as a
wheel; packages drawn by lot from all that the registry has, each in its oldest and its newest version, under all rules;
files of the standard library cut off, with lines, brackets and bytes lost. A run that ends in a traceback, with
another exit code than 0 or 1, or not within its time, is told and makes the exit code 1. Nothing is said about time.
"""

import argparse
import io
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# The packages with the most downloads of the last years that have Python in them.
PACKAGES = """
boto3 botocore urllib3 requests certifi setuptools idna charset-normalizer packaging typing-extensions aiobotocore
python-dateutil s3transfer six grpcio-status pyyaml fsspec s3fs numpy pip pandas pydantic cryptography attrs jmespath
pyasn1 click markupsafe jinja2 rsa colorama pytz importlib-metadata zipp platformdirs wheel awscli pyarrow protobuf
googleapis-common-protos google-api-core google-auth filelock jsonschema virtualenv pluggy pytest requests-oauthlib
oauthlib tqdm multidict yarl aiohttp frozenlist aiosignal async-timeout cachetools docutils exceptiongroup iniconfig
sqlalchemy greenlet werkzeug flask itsdangerous blinker isodate msal azure-core azure-storage-blob azure-identity
pygments rich markdown-it-py httpx httpcore h11 anyio sniffio starlette fastapi uvicorn websockets redis celery kombu
billiard vine amqp psycopg openai langchain-core tenacity tiktoken huggingface-hub transformers safetensors distlib
beautifulsoup4 soupsieve lxml scipy scikit-learn joblib matplotlib networkx sympy nltk gunicorn django asgiref sqlparse
paramiko pynacl bcrypt invoke docker kubernetes selenium trio outcome wsproto typer marshmallow mypy black isort flake8
pylint astroid coverage tox poetry-core tomlkit ruamel.yaml httplib2 uritemplate prompt-toolkit ipython traitlets jedi
parso tornado notebook jupyter-client jupyter-core nbformat nbconvert dask distributed ray prefect
""".split()  # noqa: SIM905  a list of words reads better so


_LARGEST = 6_000_000  # bytes of a distribution


def run(folder: Path, limit: int, *options: str) -> str:
    """What went wrong on a folder; empty for nothing."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "troth",
        "check",
        "--no-cache",
        "--jobs",
        "1",
        "--output-format",
        "json",
        *options,
        ".",
    ]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=limit, errors="replace", check=False
        )
    except subprocess.TimeoutExpired:
        return f"not within {limit} s"
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        return f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    return ""


def standard_libraries() -> Iterator[tuple[str, Path]]:
    """The standard library of this interpreter and of those in the folder of pyenv."""
    yield f"python {sys.version.split()[0]}", Path(os.__file__).parent
    for home in sorted(Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/3.*")):
        for library in home.glob("lib/python3.*"):
            if library != Path(os.__file__).parent:
                yield f"python {home.name}", library


def downloaded(name: str, store: Path) -> Path | None:
    """The folder with the package's files; None where there is no wheel for this machine."""
    folder = store / name
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as wheels:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            done = subprocess.run([*command, "--dest", wheels, name], capture_output=True, check=False)
            wheel = next(iter(Path(wheels).glob("*.whl")), None)
            if done.returncode or wheel is None:
                return None
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(folder, [n for n in packed.namelist() if n.endswith((".py", ".pyi"))])
    return folder


def drawn(count: int, seed: int, store: Path, index: str) -> Iterator[tuple[str, Path]]:
    """Packages drawn by lot that have Python in them, each in its oldest and its newest version."""
    listing = _fetched(f"{index}/simple/").decode(errors="replace")
    names = sorted(set(re.findall(r'href="(?:/simple/)?([^"/]+)/"', listing)))
    random.Random(seed).shuffle(names)
    for name in names:
        try:
            releases = json.loads(_fetched(f"{index}/pypi/{name}/json"))["releases"]
        except (OSError, ValueError, KeyError):
            continue  # taken down, or not to be had
        dated = sorted(
            (
                (file["upload_time"], version, file)
                for version, files in (releases or {}).items()
                for file in files
                if file["packagetype"] in {"sdist", "bdist_wheel"} and file["size"] < _LARGEST
            ),
            key=lambda row: row[:2],
        )
        versions = {version: file for _, version, file in reversed(dated)} if dated else {}
        chosen = dict.fromkeys((dated[0][1], dated[-1][1])) if dated else {}
        folders = [
            (version, _unpacked(index, versions[version], store / "lot" / f"{name}-{version}")) for version in chosen
        ]
        if folders and all(folder is not None for _, folder in folders):
            yield from ((f"{name} {version}", folder) for version, folder in folders if folder is not None)
            count -= 1
        if not count:
            return


def _fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return bytes(answer.read())


def _unpacked(index: str, file: Mapping[str, Any], folder: Path) -> Path | None:
    """The folder with the Python of a distribution; None where there is none in it."""
    if folder.is_dir():
        return folder
    try:
        data = _fetched(urllib.parse.urljoin(f"{index}/pypi/name/json", file["url"]))
        members = dict(_members(file["filename"], data))
    except (OSError, zipfile.BadZipFile, tarfile.TarError):
        return None
    python = {name: text for name, text in members.items() if name.endswith((".py", ".pyi", ".ipynb", ".toml", ".cfg"))}
    if not any(name.endswith(".py") for name in python):
        return None
    for name, text in python.items():
        place = folder / name
        if ".." not in Path(name).parts and place.is_relative_to(folder):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text)
    return folder


def _members(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    if name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            yield from ((member, packed.read(member)) for member in packed.namelist() if not member.endswith("/"))
        return
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for entry in archive:
            content = archive.extractfile(entry) if entry.isfile() else None
            if content is not None:
                yield entry.name, content.read()


def mangled(count: int, seed: int, folder: Path) -> None:
    """Put mangled files of the standard library into a folder."""
    rng = random.Random(seed)
    sources = sorted(Path(os.__file__).parent.glob("*.py")) + sorted(
        (Path(os.__file__).parent / "asyncio").glob("*.py")
    )
    for number in range(count):
        data = bytearray(rng.choice(sources).read_bytes())
        for _ in range(rng.randrange(1, 4)):
            way, place = rng.randrange(5), rng.randrange(max(1, len(data)))
            if way == 0:
                del data[place:]
            elif way == 1:
                del data[place : place + rng.randrange(1, 200)]
            elif way == 2:
                data[place:place] = rng.choice(
                    [b"\x00", b"\xff\xfe", b"((((", b"await ", b"async ", b"\t", b"\r", b"{{"]
                )
            elif way == 3:
                data[place:place] = data[: rng.randrange(1, 400)]
            else:
                data[:0] = rng.choice(
                    [b"\xef\xbb\xbf", b"# coding: latin-1\n", b"# coding: nonsense\n", b"# coding: utf-16\n"]
                )
        (folder / f"m{number}.py").write_bytes(bytes(data))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stdlib", action="store_true")
    parser.add_argument("--packages", type=int, default=0, metavar="N", help="the first N of the list")
    parser.add_argument("--lot", type=int, default=0, metavar="N", help="packages drawn by lot, old and new")
    parser.add_argument("--mangled", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--limit", type=int, default=900, help="seconds for one run")
    parser.add_argument("--store", type=Path, default=Path.home() / ".cache" / "troth-bench" / "wheels")
    parser.add_argument("--index", metavar="URL", help="the registry that is drawn from: needed for `--lot`")
    options = parser.parse_args()
    if options.lot and not options.index:
        parser.error("`--lot` needs `--index URL`")
    wrong = done = 0

    def tell(name: str, folder: Path, *more: str) -> None:
        nonlocal wrong, done
        what = run(folder, options.limit, *more)
        done += 1
        wrong += bool(what)
        print(f"{name:<40}{what or 'ok'}", flush=True)

    if options.stdlib:
        for name, library in standard_libraries():
            tell(name, library)
    for name in PACKAGES[: options.packages]:
        folder = downloaded(name, options.store)
        print(f"{name:<40}no wheel", flush=True) if folder is None else tell(name, folder)
    if options.lot:
        for name, folder in drawn(options.lot, options.seed, options.store, options.index):
            tell(name, folder, "--select", "TR")
    if options.mangled:
        with tempfile.TemporaryDirectory() as folder:
            mangled(options.mangled, options.seed, Path(folder))
            tell(f"{options.mangled} mangled files", Path(folder))
    print(f"{done} runs, {wrong} went wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
