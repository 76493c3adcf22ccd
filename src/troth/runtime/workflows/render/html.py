"""Show a run as one HTML page that needs nothing else: no script, no font, no request.

What a reader needs first stands first: the state, the failed step, the user's line, each attempt, and the command to
go on. Then the graph, the timeline, and a row for each step.
"""

from collections.abc import Iterator, Sequence

from troth.runtime.workflows.record.report import RunReport
from troth.runtime.workflows.record.run_events import RunEvent
from troth.runtime.workflows.render.bars import STYLE as BAR_STYLE
from troth.runtime.workflows.render.bars import bars
from troth.runtime.workflows.render.folding import folded
from troth.runtime.workflows.render.markup import Html, cut, join, raw, shown_json, tag
from troth.runtime.workflows.render.run_parts import cause, commands, question, row, state_word, undone
from troth.runtime.workflows.render.svg import graph_svg
from troth.runtime.workflows.render.talk import STYLE as TALK_STYLE
from troth.runtime.workflows.render.words import at, due, short_place, span, used

__all__ = ["html_file", "page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6670; --paper: #fff; --line: #d5dae0; --panel: #f5f7f9;
  --good: #1a7f4b; --bad: #c0392b; --wait: #9a6700; --back: #1b6f8f; --now: #1f5fbf; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #9aa5b0; --paper: #14181c;
  --line: #343c44; --panel: #1d2329; --good: #4cc38a; --bad: #ff7b6b; --wait: #e2b340; --back: #6cc5e0;
  --now: #7fb0ff; } }
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
.panel.failed { border-left-color: var(--bad); } .panel.failed :is(pre, table, details) { color: var(--ink); }
.panel.failed pre.soft { color: var(--soft); }
.panel.next { border-left-color: var(--now); }
.panel:is(.interrupted, .cancelled) { border-left-color: var(--wait); color: var(--ink); }
table.attempts { width: auto; margin: .4rem 0; font-size: .92em; }
table.attempts td, table.attempts th { border: 0; padding: .05rem .8rem .05rem 0; min-width: 0; }
table.attempts th { font-weight: 400; color: var(--soft); white-space: nowrap; }
.scroll { overflow-x: auto; }
svg.graph { max-width: none; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .name { font-weight: 600; }
svg.graph rect { fill: var(--panel); stroke: var(--soft); stroke-width: 1.5; }
svg .edge { fill: none; stroke: var(--soft); stroke-width: 1.3; }
.done, .completed { color: var(--good); } .failed, .rollback-incomplete { color: var(--bad); }
.waiting, .resting, .interrupted, .cancelled, .passed-over, .let-go { color: var(--wait); }
.undone, .rolled-back { color: var(--back); } .running { color: var(--now); }
svg.graph g[class] rect { stroke: currentColor; } svg.graph rect.thick { stroke-width: 3; }
svg .not-reached, svg .not-taken { color: var(--soft); }
svg .not-reached text, svg .not-taken text { fill: var(--soft); }
table { border-collapse: collapse; width: 100%; }
.facts th { color: var(--soft); font-weight: 400; white-space: nowrap; width: 1%; padding-right: 1.2rem; }
.log td, .log th { white-space: nowrap; min-width: 0 !important; }
.log td:last-child { white-space: normal; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .3rem .5rem; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; } td:first-child { min-width: 9rem; }
.depth-1 { padding-left: 1.6rem; }
.depth-2 { padding-left: 2.7rem; }
.depth-3 { padding-left: 3.8rem; }
.depth-4 { padding-left: 4.9rem; }
.depth-5 { padding-left: 6.0rem; }
.depth-6 { padding-left: 7.1rem; }
.depth-7 { padding-left: 8.2rem; }
.depth-8 { padding-left: 9.3rem; }
.depth-9 { padding-left: 10.4rem; }
.depth-10 { padding-left: 11.5rem; }
.depth-11 { padding-left: 12.6rem; }
.depth-12 { padding-left: 13.7rem; }
details summary { cursor: pointer; }
@media (max-width: 560px) { body { padding: .6rem; font-size: 14px; }
  .steps :is(th, td):nth-child(3) { display: none; } td:first-child { min-width: 0; }
  .log tr { display: block; padding: .3rem 0; border-bottom: 1px solid var(--line); }
  .log tr:has(> th) { display: none; }
  .log td { display: inline; border: 0; padding: 0 .5rem 0 0; white-space: normal; }
  .log td pre { margin: .2rem 0; } }
"""


def page(run: RunReport, options: str = "", events: Sequence[RunEvent] = (), later: int = 0) -> str:
    """The whole page; `options` stand at the end of the command lines in it, `events` at its end.

    `later` events are not on it.
    """
    return html_file(
        f"{run.workflow} · {run.id} · {run.state}", *_body(folded(run), options), _events(run, events, later)
    )


def html_file(title: str, *body: object) -> str:
    """One HTML file that needs nothing else, with the style that all such files have."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", raw(_STYLE + BAR_STYLE + TALK_STYLE)),
    )
    return f'<!doctype html><html lang="en">{head}{tag("body", *body)}</html>\n'


def _body(run: RunReport, options: str) -> Iterator[Html]:
    yield tag("h1", run.workflow, " ", tag("span", run.id, class_="soft mono"))
    yield tag("p", state_word(run), " ", tag("span", about(run), class_="soft"))
    yield cause(run)
    if due(run):
        yield tag("div", due(run), class_="panel next")
    yield join(tag("div", question(step), class_="panel next") for step in run.waiting_for if step.question)
    yield undone(run)
    if run.commands(options):
        yield tag("div", commands(run.commands(options)), class_="panel next")
    yield join(tag("h2", "Graph"), tag("div", graph_svg(run), class_="scroll"))
    timeline = bars(run.steps, last_seen=run.last_seen)
    if timeline:
        yield join(
            tag("h2", "Timeline"), tag("p", "solid: running, hatched: waiting, dotted: no process", class_="soft")
        )
        yield timeline
    yield tag("h2", "Steps")
    heads = tag("tr", *(tag("th", word) for word in ("step", "state", "kind", "time")))
    yield tag("table", heads, map(row, run.steps), class_="steps")
    yield join(tag("h2", "Inputs"), tag("pre", shown_json(dict(run.inputs))))
    if run.output is not None:
        yield join(tag("h2", "Output"), tag("pre", shown_json(run.output)))


def _events(run: RunReport, events: Sequence[RunEvent], later: int) -> Html:
    if not events:
        return Html("")
    rows = (
        tag("tr", tag("td", event.seq, class_="soft"), tag("td", at(event.at)), tag("td", cut(str(event), 300)))
        for event in events
    )
    more = tag("p", f"{later:,} later ones: ", tag("code", f"troth runs show {run.id} --follow")) if later > 0 else None
    return join(tag("h2", "Events"), tag("table", rows, class_="log"), more)


def about(run: RunReport) -> str:
    """When it began, how long it took, where it comes from and what it used."""
    took = f", took {span(run.ended_at - run.created_at)}" if run.ended_at is not None else ""
    forked = f", forked from {run.forked_from}" if run.forked_from else ""
    spent = f", used {used(run.tokens, run.cost)}" if run.tokens or run.cost else ""
    source = f", from {short_place(run.source)}" if run.source else ""
    governed = f", in the session {run.session} by {run.agent}" if run.session else ""
    return f"started {at(run.created_at)}{took}{forked}{governed}{spent}{source}"
