"""Show a run as one HTML page that needs nothing else: no script, no font, no request.

What a reader needs first stands first: the state, the failed step, the user's line, each attempt, and the command to
go on. Then the graph, the timeline, and a row for each step.
"""

import json
from collections.abc import Iterator
from html import escape

from troth.runtime.workflows.record.report import RunReport, StepReport, StepWord
from troth.runtime.workflows.render.bars import STYLE as BAR_STYLE
from troth.runtime.workflows.render.bars import bars
from troth.runtime.workflows.render.folding import folded
from troth.runtime.workflows.render.summary import attempts_of, code_changes, until
from troth.runtime.workflows.render.svg import graph_svg
from troth.runtime.workflows.render.talk import STYLE as TALK_STYLE
from troth.runtime.workflows.render.talk import talk_table
from troth.runtime.workflows.render.words import MARKS, RUN_MARKS, at, due, short_place, span, used, value

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6670; --paper: #fff; --line: #d5dae0; --panel: #f5f7f9;
  --good: #1a7f4b; --bad: #c0392b; --wait: #9a6700; --back: #1b6f8f; --now: #1f5fbf; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #9aa5b0; --paper: #14181c; --line: #343c44;
  --panel: #1d2329; --good: #4cc38a; --bad: #ff7b6b; --wait: #e2b340; --back: #6cc5e0; --now: #7fb0ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
code, pre, .mono { font-family: ui-monospace, monospace; font-size: .9em; }
pre { margin: .3rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.state { display: inline-block; padding: .05rem .55rem; border: 2px solid currentColor; border-radius: 5px;
  font-weight: 600; }
.soft { color: var(--soft); }
.panel { background: var(--panel); border: 1px solid var(--line); border-left: 5px solid var(--line);
  border-radius: 5px; padding: .6rem .8rem; margin: .8rem 0; }
.panel.failed { border-left-color: var(--bad); } .panel.failed pre { color: var(--ink); }
.panel.failed pre.soft { color: var(--soft); }
.panel.next { border-left-color: var(--now); }
.scroll { overflow-x: auto; }
svg { max-width: none; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .name { font-weight: 600; }
svg rect { fill: var(--panel); stroke: var(--soft); stroke-width: 1.5; }
svg .edge { fill: none; stroke: var(--soft); stroke-width: 1.3; }
.done, .completed { color: var(--good); } .failed, .rollback-incomplete { color: var(--bad); }
.waiting, .resting, .interrupted, .cancelled, .passed-over, .let-go { color: var(--wait); }
.undone, .rolled-back { color: var(--back); } .running { color: var(--now); }
svg g[class] rect { stroke: currentColor; }
svg .not-reached, svg .not-taken { color: var(--soft); }
svg .not-reached text, svg .not-taken text { fill: var(--soft); }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .3rem .5rem; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; } td:first-child { min-width: 9rem; }
details summary { cursor: pointer; }
@media (max-width: 560px) { body { padding: .6rem; font-size: 14px; }
  th:nth-child(3), td:nth-child(3) { display: none; } }
"""


def page(run: RunReport, options: str = "") -> str:
    """The whole page; `options` stand at the end of the command lines in it."""
    return "".join(_page(folded(run), options))


def _page(run: RunReport, options: str) -> Iterator[str]:
    title = f"{run.workflow} · {run.id} · {run.state}"
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title><style>{_STYLE}{BAR_STYLE}{TALK_STYLE}</style></head><body>"
    yield f"<h1>{escape(run.workflow)} <span class='soft mono'>{escape(run.id)}</span></h1>"
    took = f", took {span(run.ended_at - run.created_at)}" if run.ended_at is not None else ""
    forked = f", forked from {escape(run.forked_from)}" if run.forked_from else ""
    spent = f", used {used(run.tokens, run.cost)}" if run.tokens or run.cost else ""
    yield f"<p><span class='state {_css(run.state)}'>{RUN_MARKS[run.state]} {escape(run.state)}</span> "
    yield f"<span class='soft'>begun {at(run.created_at)}{took}{forked}{spent}</span></p>"
    for step in (*run.failures, *run.not_undone):
        yield from _failure(step)
    if due(run):
        yield f"<div class='panel next'>{escape(due(run))}</div>"
    for step in run.waiting_for:
        if step.question:
            yield f"<div class='panel next'><b>{escape(step.place)} asks:</b> {escape(step.question)}"
            if until(step):
                yield f"<div class='soft'>{escape(until(step))}</div>"
            yield f"<pre>{_json(dict(step.shown))}</pre></div>" if step.shown else "</div>"
    if run.undone:
        yield f"<p>{MARKS[StepWord.UNDONE]} undone, in this order: {escape(', '.join(run.undone))}</p>"
    if run.commands(options):
        yield "<div class='panel next'>"
        yield from (
            f"<div><code>{escape(line)}</code><br><span class='soft'>{escape(says)}</span></div>"
            for line, says in run.commands(options)
        )
        yield "</div>"
    yield f"<h2>Graph</h2><div class='scroll'>{graph_svg(run)}</div>"
    timeline = bars(run.steps)
    if timeline:
        yield "<h2>Timeline</h2><p class='soft'>solid: working, hatched: waiting, dots: no process</p>"
        yield timeline
    yield "<h2>Steps</h2><table><tr><th>step</th><th>state</th><th>kind</th><th>time</th></tr>"
    for step in run.steps:
        yield from _row(step)
    yield "</table>"
    yield f"<h2>Inputs</h2><pre>{_json(dict(run.inputs))}</pre>"
    if run.output is not None:
        yield f"<h2>Output</h2><pre>{_json(run.output)}</pre>"
    yield "</body></html>\n"


def _failure(step: StepReport) -> Iterator[str]:
    tries = f" after {len(step.attempts)} attempts" if len(step.attempts) > 1 else ""
    yield f"<div class='panel failed'><b>{MARKS[StepWord.FAILED]} {escape(step.place)} failed{tries}</b>"
    if step.error is not None:
        yield f"<pre>{escape(str(step.error))}</pre>"
        if step.error.place:
            yield f"<pre class='soft'>{escape(short_place(step.error.place))}  {escape(step.error.line)}</pre>"
    if len(step.attempts) > 1:
        yield f"<pre>{escape(chr(10).join(attempts_of(step)))}</pre>"
    yield "</div>"


def _row(step: StepReport) -> Iterator[str]:
    indent = f"padding-left:{0.5 + step.depth * 1.1:.1f}rem"
    yield f"<tr><td style='{indent}'>{_more(step)}</td>"
    yield f"<td class='{_css(step.state)}'>{MARKS[step.state]} {escape(step.state)}</td>"
    yield f"<td>{escape(step.kind)} <span class='soft'>{escape(value(step.detail, 80))}</span></td>"
    yield f"<td>{_time(step)}</td></tr>"


def _time(step: StepReport) -> str:
    if step.ended_at is None:
        return ""
    if step.kind in ("sleep", "approval"):
        return f"{span(step.took)} waiting"
    waited = f" + {span(step.waited)} waiting" if step.waited else ""
    return span(step.worked) + waited + (f" + {span(step.unattended)} without a process" if step.unattended else "")


def _more(step: StepReport) -> str:
    name = escape(step.place)
    parts = []
    if step.done_by:
        parts.append(f"<p class='soft'>done by {escape(step.done_by)}, which this run was forked from</p>")
    if step.tokens or step.cost:
        parts.append(f"<p class='soft'>used {escape(used(step.tokens, step.cost))}</p>")
    if step.inputs:
        parts.append(f"in <pre>{_json(step.inputs)}</pre>")
    if step.output is not None:
        parts.append(f"out <pre>{_json(step.output)}</pre>")
    if step.code_changed:
        parts.append(f"<p>{escape(code_changes(step))}</p>")
    if step.talk:
        parts.append(f"what its agent said and did {talk_table(step.talk)}")
    if step.attempts:
        parts.append(f"<pre>{escape(chr(10).join(attempts_of(step)))}</pre>")
    if step.error is not None and step.error.traceback:
        parts.append(f"<pre class='soft'>{escape(step.error.traceback)}</pre>")
    return f"<details><summary>{name}</summary>{''.join(parts)}</details>" if parts else name


def _json(thing: object) -> str:
    text = json.dumps(thing, ensure_ascii=False, indent=2)
    return escape(text if len(text) < 4000 else text[:4000] + "\n…")


def _css(state: str) -> str:
    return state.replace(" ", "-")
