"""Does what cannot matter leave findings alone, on real trees? `python bench/check/metamorphic.py TREE… [--every 6]`.

In a copy of each tree every sixth `await` that begins a statement is taken away first, so that there is much to find.
Then the tree is changed in ways that mean the same, and the findings about lost calls (TR1, TR2) are compared:

reordered  the functions and classes of every file, and the methods of every class, in the opposite order
renamed    functions, methods and classes whose names are the project's own, all over the project
split      the later half of the functions of every file in a module of its own, which imports what it needs
stripped   no `async`, no `await`: whatever is still found must be a library's coroutine, or annotated as one

Every difference is printed with its line. Exit code 1 if there is one.
"""

import argparse
import ast
import io
import json
import keyword
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from troth.analysis.semantics.evidence.common_method_names import GENERIC

DROPPED = re.compile(r"^(\s+)await (?=[\w.]+\()")
MARK = "_zq"
Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Found = Counter[tuple[str, str, str]]


def parsed(path: Path) -> tuple[str, ast.Module] | None:
    """The text of a file and its tree; None for one that is no Python of this interpreter."""
    try:
        text = path.read_text(encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return None if "\f" in text or "\r" in text else (text, tree)


def files(root: Path) -> Iterator[tuple[Path, str, ast.Module]]:
    for path in sorted(root.rglob("*.py")):
        known = parsed(path)
        if known is not None:
            yield path, *known


def first_line(node: Defined) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def is_whole(node: Defined, lines: list[str]) -> bool:
    """Whether a definition has its lines to itself."""
    end = node.end_lineno or node.lineno
    return ";" not in lines[end - 1] and not lines[first_line(node) - 1][: node.col_offset].strip()


def drop_awaits(root: Path, every: int) -> None:
    """Take every so many'th `await` of a statement away."""
    seen = 0
    for path, text, _ in files(root):
        lines = text.split("\n")
        for number, line in enumerate(lines):
            if DROPPED.match(line):
                seen += 1
                if seen % every == 0:
                    lines[number] = DROPPED.sub(r"\1", line)
        if parsed(path) is not None and "\n".join(lines) != text:
            before = path.read_bytes()
            path.write_text("\n".join(lines), encoding="utf-8")
            if parsed(path) is None:
                path.write_bytes(before)


def reorder(root: Path) -> None:
    for path, text, tree in files(root):
        lines = text.split("\n")
        for body in reversed([tree.body, *(n.body for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]):
            blocks = [n for n in body if isinstance(n, Defined) and is_whole(n, lines)]
            if len({n.name for n in blocks}) < len(blocks) or len(blocks) < 2 or any(has_inner(n) for n in blocks):
                continue  # of two with one name the last one counts; classes inside are turned by themselves
            cut = [lines[first_line(n) - 1 : n.end_lineno] for n in blocks]
            for node, new in reversed(list(zip(blocks, reversed(cut), strict=True))):
                lines[first_line(node) - 1 : node.end_lineno] = new
        path.write_text("\n".join(lines), encoding="utf-8")
        if parsed(path) is None:
            path.write_text(text, encoding="utf-8")


def has_inner(node: Defined) -> bool:
    return any(isinstance(one, ast.ClassDef) for one in ast.walk(node))


def rename(root: Path) -> None:
    """Names that the project defines and that nothing else can mean: none of a library, of a string or of a file."""
    defined: set[str] = set()
    taken: set[str] = set(GENERIC) | set(keyword.kwlist)
    for path, _, tree in files(root):
        taken.update(path.relative_to(root).with_suffix("").parts)
        for node in ast.walk(tree):
            if isinstance(node, Defined):
                defined.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                taken.update(re.findall(r"\w+", node.value))
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "super()":
                taken.add(node.attr)  # a library's class may call it by its name
            elif isinstance(node, ast.alias | ast.keyword | ast.arg):
                taken.update(str(getattr(node, "name", None) or node.arg).split("."))  # type: ignore[union-attr]
                taken.add(str(getattr(node, "asname", "")))
    own = {name for name in defined - taken if not name.startswith(("__", "test", "visit_", "_test")) and len(name) > 3}
    for path, text, _ in files(root):
        tokens = [
            one._replace(string=one.string + MARK) if one.type == tokenize.NAME and one.string in own else one
            for one in tokenize.generate_tokens(io.StringIO(text).readline)
        ]
        lines = text.split("\n")
        for one in reversed(tokens):
            if one.type == tokenize.NAME and one.string.endswith(MARK):
                row, column = one.start
                lines[row - 1] = lines[row - 1][: one.end[1]] + MARK + lines[row - 1][one.end[1] :]
                assert column < one.end[1]
        path.write_text("\n".join(lines), encoding="utf-8")
        if parsed(path) is None:
            path.write_text(text, encoding="utf-8")


def split(root: Path) -> None:
    for path, text, tree in files(root):
        lines = text.split("\n")
        plain = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and is_whole(n, lines)]
        names = Counter(n.name for n in ast.walk(tree) if isinstance(n, Defined))
        moved = [n for n in plain[len(plain) // 2 :] if names[n.name] == 1 and not n.decorator_list]
        if len(moved) < 2 or path.name in {"__init__.py", "conftest.py"} or not path.stem.isidentifier():
            continue
        imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        future = [n for n in imports if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
        bound = sorted(bound_names(tree) - {n.name for n in moved})
        dot = "." if (path.parent / "__init__.py").exists() else ""
        part = f"{path.stem}{MARK}"
        head = [ast.unparse(n) for n in future] + [ast.unparse(n) for n in imports if n not in future]
        if bound:
            head.append(f"from {dot}{path.stem} import {', '.join(bound)}")
        texts = ["\n".join(lines[n.lineno - 1 : n.end_lineno]) for n in moved]
        path.with_name(f"{part}.py").write_text("\n".join([*head, *texts, ""]), encoding="utf-8")
        for node in reversed(moved):
            del lines[node.lineno - 1 : node.end_lineno]
        at = max((n.end_lineno or 0 for n in imports), default=0)
        lines.insert(at, f"from {dot}{part} import {', '.join(n.name for n in moved)}")
        path.write_text("\n".join(lines), encoding="utf-8")
        if parsed(path) is None or parsed(path.with_name(f"{part}.py")) is None:
            path.write_text(text, encoding="utf-8")
            path.with_name(f"{part}.py").unlink()


def bound_names(tree: ast.Module) -> set[str]:
    """What the module itself binds at its top, imports aside."""
    names = {n.name for n in tree.body if isinstance(n, Defined)}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names.update(t.id for t in targets if isinstance(t, ast.Name))
    return {name for name in names if not name.startswith("__")}


def strip(root: Path) -> None:
    for path, text, _ in files(root):
        stripped = re.sub(r"\b(?:async|await)\b[ \t]+(?!=)", "", text)
        path.write_text(stripped, encoding="utf-8")
        if parsed(path) is None:
            path.write_text(text, encoding="utf-8")


def told(root: Path) -> list[dict[str, object]]:
    command = [sys.executable, "-P", "-m", "troth", "check", "--no-cache", "--jobs", "1", "--select", "TR1,TR2"]
    done = subprocess.run([*command, "--output-format", "json", "."], cwd=root, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr.decode(errors="replace")[-2000:])
    return json.loads(done.stdout)["findings"]  # type: ignore[no-any-return]


def summed_up(root: Path, found: list[dict[str, object]]) -> Found:
    """Code, confidence and line of each finding, without the marks of a change."""
    counted: Found = Counter()
    for one in found:
        if str(one["path"]).endswith(".py"):
            lines = (root / str(one["path"])).read_text(encoding="utf-8", errors="replace").split("\n")
            text = lines[int(str(one["line"])) - 1].strip().replace(MARK, "")
            counted[str(one["code"]), str(one["confidence"]), text] += 1
    return counted


def is_of_the_project(finding: dict[str, object]) -> bool:
    """Whether a finding in a tree without `async` says that a function of the project gives a coroutine."""
    reasons = [str(one["text"]) for one in finding["reason"]]  # type: ignore[attr-defined]
    return any("`async def`" in text or ("async generator" in text and " of " not in text) for text in reasons)


CHANGES: dict[str, Callable[[Path], None]] = {"reordered": reorder, "renamed": rename, "split": split}


def measure(tree: Path, every: int) -> int:
    differences = 0
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        shutil.copytree(tree, base, ignore=shutil.ignore_patterns(".*", "*.ipynb"), symlinks=True)
        drop_awaits(base, every)
        before = summed_up(base, told(base))
        print(f"{tree.name}: {before.total()} findings", flush=True)
        for name, change in CHANGES.items():
            copy = Path(folder) / name
            shutil.copytree(base, copy, symlinks=True)
            change(copy)
            after = summed_up(copy, told(copy))
            lost, new = before - after, after - before
            differences += lost.total() + new.total()
            print(f"  {name:<10} {lost.total()} lost, {new.total()} new", flush=True)
            for sign, some in (("-", lost), ("+", new)):
                for (code, confidence, line), count in sorted(some.items()):
                    print(f"    {sign} {code} {confidence:<8} {line[:100]}" + (f"  ×{count}" if count > 1 else ""))
        copy = Path(folder) / "stripped"
        shutil.copytree(base, copy, symlinks=True)
        strip(copy)
        left = [one for one in told(copy) if is_of_the_project(one)]
        differences += len(left)
        print(f"  stripped   {len(left)} left", flush=True)
        for one in left:
            print(f"    ! {one['path']}:{one['line']} {one['code']} {one['message']}")
    return differences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=6)
    options = parser.parse_args()
    differences = sum(measure(tree, options.every) for tree in options.trees)
    print(f"{differences} differences in {len(options.trees)} trees")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
