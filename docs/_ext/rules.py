"""Write the page of each rule, and the list of all of them, from what the rules say about themselves."""

import re
from pathlib import Path

from troth.analysis.report.rulebook import FAMILIES, Rulebook, RuleExample, RulePage, rule_pages

__all__ = ["write_rule_pages"]


def write_rule_pages(folder: Path) -> list[Path]:
    """Write `index.md` and a page per rule into `folder`; pages of rules that are gone are taken away.

    A file is only written if it says something else than before, so that a build after no change reads nothing anew.
    """
    pages = rule_pages()
    texts = {folder / f"{page.name}.md": _page(page, pages) for page in pages.values()}
    texts[folder / "index.md"] = _index(pages)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        if old not in texts:
            old.unlink()
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return sorted(texts)


def _index(pages: Rulebook) -> str:
    lines = [
        "# Rules",
        "",
        "What `troth check` finds. The first digit of a code is its family.",
        "",
        "*Fix*: whether `troth fix` repairs at least some of its cases. *On*: whether it is reported by default;",
        "`--extend-select` switches on the others.",
        "",
    ]
    for start, family in FAMILIES.items():
        own = [page for page in pages.values() if page.code.startswith(start)]
        if own:
            lines += [f"## {family.capitalize()}", "", "| code | rule | finds | fix | on |", "|---|---|---|---|---|"]
            lines += [_row(page, is_default=page.code not in pages.on_request) for page in own]
            lines.append("")
    names = [page.name for page in pages.values()]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *names, "```", ""])


def _row(page: RulePage, *, is_default: bool) -> str:
    finds = _sentence(page.part("What it finds") or page.title)
    fix = "yes" if any(example.fixed for example in page.examples) else "–"
    return f"| {page.code} | [{page.name}]({page.name}.md) | {_cell(finds)} | {fix} | {'yes' if is_default else 'no'} |"


def _sentence(text: str) -> str:
    """The first sentence of a text, as a sentence begins."""
    first = re.split(r"(?<=[.:;])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".:;")
    return f"{first[:1].upper()}{first[1:]}."


def _capitalized(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _page(page: RulePage, pages: Rulebook) -> str:
    lines = [f"# {page.code} {page.name}", "", f"*{page.title}.* A rule of the family “{page.family}”.", ""]
    if page.code in pages.on_request:
        lines += [
            f"It is off by default: `--extend-select {page.name}`, or `extend-select` in the settings, switches it on.",
            "",
        ]
    for heading, text in page.parts:
        lines += [f"## {heading}", ""] if heading else []
        lines += [_capitalized(text), ""]
    for heading, is_bad in (("Reported", True), ("Left alone", False)):
        chosen = [example for example in page.examples if example.is_bad is is_bad]
        lines += [f"## {heading}", ""] if chosen else []
        for example in chosen:
            lines += _example(example)
    lines += ["## Silencing it", "", f"At one place: `# troth: allow {page.name}` on the line; everywhere:", ""]
    lines += ["```toml", "[tool.troth]", f'ignore = ["{page.name}"]', "```", ""]
    return "\n".join(lines)


def _example(example: RuleExample) -> list[str]:
    lines = [f"### {example.title.capitalize()}", "", *_code(example.code)]
    if example.fixed:
        lines += ["After `troth fix`:", "", *_code(example.fixed)]
    return lines


def _code(text: str) -> list[str]:
    return ["```{code-block} python", "\n".join(text.rstrip().splitlines()), "```", ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
