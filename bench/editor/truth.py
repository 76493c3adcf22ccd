"""Type random edits into a few files of a real tree, and hold each answer against a cold one.

    python -m bench.editor.truth FOLDER [--rounds N] [--seed N] [--files N] [--every N]

It works as the server does: in one process, with the texts in place of the files, at first in a hurry and then for all
that depends on the edit. A proof rather than a measurement: it stops with an error at the first settled answer that is
not the cold one, and tells how often the hurried answer about the edited files was another one.
"""

import argparse
import random
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bench.check.editing import CHANGES, changed, project

from troth.analysis.pipeline import analyse, silent_functions
from troth.analysis.pipeline.warm_state import Memory
from troth.analysis.project.project import Project

LEFT_OUT = ("broken",)  # such a file is judged by what it said before, which a cold check cannot know


def main() -> None:
    """Edit until an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=4, help="how many files are typed in")
    parser.add_argument("--every", type=int, default=1, help="after how many edits the answers are compared")
    options = parser.parse_args()
    silent_functions._WORTH = 0  # so that small files are on trial as well
    for what in LEFT_OUT:
        CHANGES.pop(what)
    chance = random.Random(options.seed)
    whole = project(options.folder.resolve())
    texts = {path: (whole.root / path).read_text(encoding="utf-8", errors="replace") for path in whole.files}
    chosen = chance.sample(sorted(texts, key=lambda path: len(texts[path]))[-4 * options.files :], options.files)
    typed = {path: texts[path] for path in chosen}
    memory = Memory()
    answer(whole, typed, memory)
    walked = all_functions = hurried_wrong = 0
    for number in range(options.rounds):
        path = chance.choice(chosen)
        what, text = changed(typed[path], chance)
        if chance.random() < 0.15:
            what, text = "as it was", texts[path]
        typed[path] = text
        hurried, _ = answer(whole, typed, memory, hurry=True)
        assert memory.program is not None
        walked += len(memory.program.walked)
        all_functions += sum(1 for _ in memory.program.module(path).facts.functions)
        if chance.random() < 0.25:
            continue  # typed on before all that depends on it was looked at
        settled, warm_seconds = answer(whole, typed, memory)
        own = [finding for finding in settled if f"path='{path}'" in finding.partition("message=")[0]]
        hurried_wrong += any(finding not in hurried for finding in own)
        if number % options.every:
            continue
        cold, cold_seconds = answer(whole, typed, None)
        print(f"{number:4} {warm_seconds:6.3f} s {cold_seconds:6.2f} s  {path}: {what}", flush=True)
        if settled != cold:
            for finding in sorted(set(settled) ^ set(cold)):
                print("warm only:" if finding in settled else "cold only:", finding)
            sys.exit("the settled answer is not the cold one")
    print(f"{walked} walks for {all_functions} functions; the hurried answer lacked something {hurried_wrong} times")


def answer(
    whole: Project, typed: Mapping[str, str], memory: Memory | None, *, hurry: bool = False
) -> tuple[list[str], float]:
    """All findings as text, and the CPU seconds they took."""
    overlay = {path: text.encode() for path, text in typed.items()}
    began = time.process_time()
    analysis = analyse(whole, jobs=1, overlay=overlay, memory=memory, hurry=hurry)
    return [repr(finding) for finding in analysis.findings], time.process_time() - began


if __name__ == "__main__":
    main()
