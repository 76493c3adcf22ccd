"""Show what waits for a person as one row of a list: a question of a run, or an act that needs a yes."""

from troth.runtime.sessions.policy.consent import Ask
from troth.runtime.workflows.render.markup import Html, cut, join, tag
from troth.server.pages.frame.parts import badge, moment, row, times
from troth.server.pages.frame.view import View
from troth.server.pages.lists.under_way import AskingRun, name_of

__all__ = ["ask_row", "asking_row"]


def asking_row(view: View, asking: AskingRun) -> Html:
    """A run: its oldest question, how many more it has, and since when it asks."""
    run, question = asking.run, asking.questions[0]
    others = len(asking.questions) - 1
    note = join(
        tag("b", f"{question.place} asks: "),
        cut(question.text, 200),
        tag("span", f" and {times(others, 'more question')}", class_="soft") if others else None,
    )
    href = view.link("runs", run.id)
    return row(f"ask-{run.id}", href, badge(run.state), name_of(run), run.id, note, moment(question.at))


def ask_row(view: View, ask: Ask) -> Html:
    """An act of an agent that waits for the yes of people."""
    note = join(tag("b", f"wants to do {ask.what}"), f": {cut(ask.reason, 200)}" if ask.reason else None)
    href = view.link("sessions", ask.session)
    return row(f"act-{ask.id}", href, badge("waiting"), ask.agent, ask.id, note, moment(ask.asked_at))
