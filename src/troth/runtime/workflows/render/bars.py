"""Draw a run's timeline in HTML: a bar for each step on one scale, as wide as the page is."""

from collections.abc import Iterator, Sequence
from html import escape

from troth.runtime.workflows.record.report import StepReport
from troth.runtime.workflows.render.words import MARKS, span

__all__ = ["STYLE", "bars"]

_WORDS = {"work": "working", "wait": "waiting", "gone": "no process"}
STYLE = """
.bars { display: grid; grid-template-columns: fit-content(11rem) 1fr max-content; gap: .2rem .7rem; align-items: center;
  font-size: .85em; }
.bars > div { overflow-wrap: anywhere; min-width: 0; }
.bar { position: relative; height: 1.1rem; border-left: 1px solid var(--line); border-right: 1px solid var(--line); }
.bar i { position: absolute; min-width: 2px; }
.bar i.work { top: .15rem; bottom: .15rem; background: currentColor; }
.bar i.wait { top: .35rem; bottom: .35rem; border: 1px solid currentColor;
  background: repeating-linear-gradient(135deg, currentColor 0 1px, transparent 1px 5px); }
.bar i.gone { top: 50%; border-top: 2px dotted var(--soft); }
.scale { display: flex; justify-content: space-between; color: var(--soft); }
"""


def bars(steps: Sequence[StepReport]) -> str:
    """The timeline; empty where nothing took any time. Work is solid, waiting hatched, time without a process a gap."""
    timed = [step for step in steps if step.spans() and not step.is_block]
    return "".join(_bars(timed)) if timed else ""


def _bars(steps: Sequence[StepReport]) -> Iterator[str]:
    every = [stretch for step in steps for stretch in step.spans()]
    start, end = min(stretch[0] for stretch in every), max(stretch[1] for stretch in every)
    whole = max(end - start, 1e-6)
    yield "<div class='bars'><div></div>"
    yield f"<div class='scale'><span>0</span><span>{span(whole)}</span></div><div></div>"
    for step in steps:
        css = step.state.replace(" ", "-")
        yield f"<div>{escape(step.place)}</div><div class='bar {css}'>"
        for began, ended, activity in step.spans():
            offset, wide = (began - start) / whole * 100, (ended - began) / whole * 100
            title = f"{step.place}: {_WORDS[activity]} for {span(ended - began)}"
            yield f"<i class='{activity}' style='left:{offset:.2f}%;width:{wide:.2f}%' title='{escape(title)}'></i>"
        yield f"</div><div class='{css}'>{MARKS[step.state]} {escape(step.state)}</div>"
    yield "</div>"
