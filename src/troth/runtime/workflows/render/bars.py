"""Draw a run's timeline as SVG: a bar for each step on one scale, as wide as the page is."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from troth.runtime.workflows.record.report import StepReport, StepWord
from troth.runtime.workflows.render.markup import Html, join, raw, tag
from troth.runtime.workflows.render.words import MARKS, span

__all__ = ["STYLE", "bars"]

_WORDS = {"work": "working", "wait": "waiting", "gone": "no process"}
_UNDER_WAY = (StepWord.RUNNING, StepWord.WAITING, StepWord.RESTING)
_MANY = 400  # bars that are drawn; of more nobody could tell one from the other
STYLE = """
.bars { display: grid; grid-template-columns: fit-content(11rem) 1fr max-content; gap: .2rem .7rem; align-items: center;
  font-size: .85em; }
.bars > div { overflow-wrap: anywhere; min-width: 0; }
.bar svg { display: block; width: 100%; height: 1.1rem; border-left: 1px solid var(--line);
  border-right: 1px solid var(--line); overflow: visible; }
.bar rect.work { fill: currentColor; stroke: currentColor; stroke-width: 2; }
.bar rect.wait { fill: url(#hatch); stroke: currentColor; stroke-width: 1; }
.bar line.gone { stroke: var(--soft); stroke-width: 2; stroke-dasharray: 2 3; }
.hatch path { stroke: currentColor; stroke-width: 1; }
.scale { display: flex; justify-content: space-between; color: var(--soft); }
"""
_HATCH = raw(
    '<svg class="hatch" width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" width="6" height="6" '
    'patternUnits="userSpaceOnUse"><path d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5"/></pattern></defs></svg>'
)


def bars(steps: Sequence[StepReport], now: float | None = None, last_seen: float | None = None) -> Html:
    """The timeline; empty where nothing took any time. Work is solid, waiting hatched, time without a process a gap.

    What is under way is drawn up to `now`, what was interrupted up to when its process was `last_seen`.
    """
    at = time.time() if now is None else now
    drawn = [replace(step, ended_at=at) if _is_under_way(step) else _cut_off(step, last_seen) for step in steps]
    timed = [step for step in drawn if step.spans() and not step.is_block]
    return join(_bars(timed)) if timed else Html("")


def _is_under_way(step: StepReport) -> bool:
    return step.ended_at is None and step.started_at is not None and step.state in _UNDER_WAY


def _cut_off(step: StepReport, last_seen: float | None) -> StepReport:
    """A step as it stood when its process was last seen, where it was interrupted."""
    if step.state is not StepWord.INTERRUPTED or step.started_at is None or last_seen is None:
        return step
    return replace(step, ended_at=max(last_seen, step.started_at))


def _bars(steps: Sequence[StepReport]) -> Iterator[Html]:
    every = [stretch for step in steps for stretch in step.spans()]
    start, end = min(stretch[0] for stretch in every), max(stretch[1] for stretch in every)
    whole = max(end - start, 1e-6)
    scale = tag("div", tag("span", "0"), tag("span", span(whole)), class_="scale")
    rows = [_row(step, start, whole) for step in steps[:_MANY]]
    more = [tag("div", f"… {len(steps) - _MANY:,} more"), tag("div"), tag("div")] if len(steps) > _MANY else []
    yield join(_HATCH, tag("div", tag("div"), scale, tag("div"), rows, more, class_="bars"))


def _row(step: StepReport, start: float, whole: float) -> Html:
    css = step.state.replace(" ", "-")
    picture = tag(
        "svg",
        (_stretch(step, stretch, start, whole) for stretch in step.spans()),
        role="img",
        aria_label=", ".join(f"{_WORDS[kind]} {span(ended - began)}" for began, ended, kind in step.spans()),
    )
    return join(
        tag("div", step.place),
        tag("div", picture, class_=f"bar {css}"),
        tag("div", f"{MARKS[step.state]} {step.state}", class_=css),
    )


def _stretch(step: StepReport, stretch: tuple[float, float, str], start: float, whole: float) -> Html:
    began, ended, activity = stretch
    offset, wide = (began - start) / whole * 100, (ended - began) / whole * 100
    title = tag("title", f"{step.place}: {_WORDS[activity]} for {span(ended - began)}")
    if activity == "gone":
        return tag("line", title, class_="gone", x1=f"{offset:.2f}%", x2=f"{offset + wide:.2f}%", y1="50%", y2="50%")
    high = {"y": "15%", "height": "70%"} if activity == "work" else {"y": "28%", "height": "44%"}
    return tag("rect", title, class_=activity, x=f"{offset:.2f}%", width=f"{wide:.2f}%", **high)
