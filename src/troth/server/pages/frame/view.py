"""What a page is made with: the server, whoever looks, the words in the address, and the ways to other pages."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from starlette.requests import Request

from troth.bridge import call
from troth.runtime.workflows.render.markup import Html, tag
from troth.server.access.scopes import Caller, Scope
from troth.server.access.sign_ins import visitor_of
from troth.server.context import ServerContext, context_of
from troth.server.errors import ApiError
from troth.server.pages.frame.layout import root_of
from troth.server.pages.frame.parts import address

__all__ = ["View"]

T = TypeVar("T")
_LONGEST = 400  # letters of a word in an address


class View:
    """One look at one page."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.context: ServerContext = context_of(request)
        self.visitor = visitor_of(request)
        self.root = root_of(request)

    @property
    def caller(self) -> Caller:
        """Whoever looks."""
        return self.visitor.caller

    @property
    def id(self) -> str:
        """The id in the address."""
        thing: str = self.request.path_params["id"]
        return thing

    def word(self, name: str) -> str:
        """A word of the address, as in `?state=failed`; empty where it is not there."""
        word = self.request.query_params.get(name, "").strip()
        if len(word) > _LONGEST:
            raise ApiError(400, "invalid_field", f"`{name}` has {len(word)} characters, and {_LONGEST} is the limit.")
        return word

    def words(self, *names: str) -> dict[str, str]:
        """The words of the address that a list is filtered by."""
        return {name: self.word(name) for name in names}

    def number(self, name: str, least: int = 0) -> int:
        """A number in the address."""
        word = self.word(name)
        if not word:
            return least
        if not word.isascii() or not word.isdigit() or len(word) > 18:
            raise ApiError(400, "invalid_field", f"`{name}` is {word[:40]!r}, which is not a number.", param=name)
        return int(word)

    def link(self, *parts: str, **query: object) -> str:
        """The address of another page, seen from this one."""
        return self.root + address(*parts, **query)

    async def ask(self, question: Callable[[], T]) -> T:
        """The answer of something that blocks."""
        return await call(question)

    def may(self, scope: Scope) -> bool:
        """Whether whoever looks may press a button that takes `scope`."""
        return self.visitor.may(scope)

    def button(
        self,
        path: str,
        label: str,
        *,
        scope: Scope,
        fields: Mapping[str, str] | None = None,
        inputs: Iterable[Html] = (),
        kind: str = "",
        id: str | None = None,  # noqa: A002
    ) -> Html:
        """A form of one button with the token of this page; nothing where the key may not press it.

        It works without scripts, too.
        """
        if not self.may(scope):
            return Html("")
        hidden = {"token": self.visitor.token(), **(fields or {})}
        return tag(
            "form",
            (tag("input", type="hidden", name=name, value=value) for name, value in hidden.items()),
            inputs,
            tag("button", label, class_=kind or None),
            method="post",
            action=self.root + path,
            class_="act",
            id=id,
        )
