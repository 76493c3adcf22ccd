"""What the other sites of a callee say about it: whether they await it, and whether any does not.

The same words mean the same thing only so far. Words that begin with something imported mean it in every file; words
that begin with `self` mean it in one class; a variable means it in one function. The further the words reach beyond
that, the more sites have to await, and the fewer may do otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.folders import folder_of, is_far_from
from troth.analysis.semantics.evidence.words import pattern, threshold, words
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.color_checks import speaks_of_color
from troth.analysis.semantics.resolve.name_counts import tail

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

__all__ = [
    "COMMON_RECEIVERS",
    "OF_NOBODY",
    "Siblings",
    "Witness",
    "is_of_async_module",
    "is_queued",
    "is_telling",
    "siblings_of",
]

OF_NOBODY = "?"  # where a method comes from that the receiver's class, as far as it is known, does not have


class Witness(NamedTuple):
    """What siblings say: why the callee is believed to give an awaitable, and whether more than a guess supports it."""

    reason: Reason
    firm: bool


class _Count(NamedTuple):
    """How many functions await something, and how many call it without."""

    awaited: int
    bare: int

    def mostly(self, fewest: int, share: int) -> bool:
        """Whether enough await, and of the others no more than one in `share`; the one that asks is left out."""
        return self.awaited >= fewest and (self.bare - 1) * share <= self.awaited


class _Named:
    """What is known of all callees with one last name."""

    def __init__(self) -> None:
        self.awaited: Counter[str] = Counter()
        self.bare: Counter[str] = Counter()
        self.aside: Counter[str] = Counter()  # of these, the ones in sync functions
        self.places: dict[str, tuple[str, int]] = {}
        self.packages: dict[str, set[str]] = {}  # what the files that await it import
        self.folders: dict[str, set[str]] = {}  # where they are

    def of(self, key: str) -> _Count:
        return _Count(self.awaited[key], self.bare[key])

    def of_async(self, key: str, name: str) -> _Count:
        """The same for an async function: a sync one cannot await, and mostly gives the awaitable to one that can.

        Not of a common word, which the sync ones may mean in earnest.
        """
        aside = 0 if name in GENERIC else self.aside[key]
        return _Count(self.awaited[key], self.bare[key] - aside + aside // _ASIDE)


def siblings_of(program: Inference) -> Siblings:
    """The counter of a program; there is one for each."""
    counter = program.call_sites
    if not isinstance(counter, Siblings):
        counter = program.call_sites = Siblings(program)
    return counter


class Siblings:
    """Counts the sites of the whole project."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._counts = program.counts
        self._named: MutableMapping[str, _Named] = program.answers()

    def is_awaited_of(self, receiver: str, name: str) -> bool:
        """Whether a method of receivers that are called so is awaited, and hardly ever called without."""
        return self._all_of(name).of(f"{receiver}.{name}").mostly(1, _SOME)

    def sites_of(self, name: str) -> tuple[int, int]:
        """How many functions await callees of that last name, and how many call them without."""
        count = self._all_of(name).of(_ANY)
        return count.awaited, count.bare

    def is_left_alone(self, name: str) -> bool:
        """Whether callees of that last name are often called without `await`: they may do their work by themselves."""
        return not self._all_of(name).of(_ANY).mostly(1, _VERY_FEW)

    def is_awaited_by_others(self, name: str) -> bool:
        """Whether somebody awaits a callee of that last name, other than the override of it that hands the call on."""
        counts = self._all_of(name)
        return counts.awaited[_ANY] > counts.awaited[f"?.{name}"]

    def is_used_plainly(self, text: str, function: Function) -> bool:
        """Whether several functions call the same by the same words, and nobody ever awaits it by these.

        `client.safety.run_shield(…)` all over the tests is the method of a sync client; the namesake in the project is
        what answers it on the other side.
        """
        if (function.is_async and function.index) or text.count(".") < 2 or text.startswith(("self.", "cls.")):
            return False  # an object at hand rather than a part of a client
        counts = self._all_of(text.rpartition(".")[2])
        count = counts.of(tail(text))
        if count.bare >= _FEWEST_PLAIN and not count.awaited:
            return True
        end = f" {text}"
        plainly = sum(number for key, number in counts.bare.items() if key.endswith(end))
        return plainly >= _FEWEST_PLAIN and not any(key.endswith(end) for key in counts.awaited)

    def speak_of(self, text: str, function: Function, external: str = "") -> Witness | None:
        """Why a callee, as it is written in `function`, is believed to give an awaitable."""
        name = text.rpartition(".")[2]
        if "…" in text or not self._counts.awaited_names[name]:
            return None
        if "." not in text and _is_local(text, function):
            return self._of_parameter(text, function)  # another one in each function
        if text == f"self.{name}" and not self._counts.colors(name)[0] and self._counts.colors(name)[1]:
            return None  # a sync method that gives a future: it has done its work when it is called
        if name in _REGISTERED and not text.startswith("self."):
            return None  # `tool.fn` of another tool is another function
        if is_queued(text):
            return None  # what a pipeline is told is done when it is executed
        if text[1:2] == "." and _is_local(text, function):
            return None  # `a.send` in another function is another `a`
        if "." in text and any(name in library.working_methods(top) for top in function.module.packages):
            return None  # a library that the file imports has it as something to be awaited by who wants to
        near = self._by_identity(text, name, function) or self._in_this_place(text, name, function)
        if (near is not None and near.firm) or external == OF_NOBODY:
            return near
        wide = self._by_words(text, name, function, external)
        if near is not None:
            return wide if wide is not None and wide.firm else near
        return (
            wide
            or self._by_name(text, name, function, external)
            or self._by_neighbors(text, name, function)
            or self._by_calls(text, name, external)
        )

    def _of_parameter(self, name: str, function: Function) -> Witness | None:
        """A parameter that is called is the same in the function that has it and in those inside, and nowhere else."""
        around: Function | None = function
        while around is not None and name not in around.params:
            if name in around.module.inner(around.index) or name in around.origins:
                return None
            around = around.parent
        if around is None:
            return None
        return self._in_its_function(name, function, around) or self._of_namesakes(name, function, around)

    def _of_namesakes(self, name: str, function: Function, around: Function) -> Witness | None:
        """Parameters of that name in other functions of the file: they are called and awaited, and never without."""
        if len(name) < _TELLING or around.module is not function.module or speaks_of_color(self._program, around):
            return None
        awaiting: list[Function] = []
        for other in self._program.index.functions_naming({name}):
            if other.module is not function.module or name not in other.params or other is around:
                continue
            if name in other.facts.awaited and name not in other.facts.calls:
                awaiting.append(other)
            elif name in other.facts.calls:
                return None
        if len(awaiting) < _FEWEST_HERE or around is not function or name in function.facts.awaited:
            return None
        why = f"`{name}(…)` is awaited in {len(awaiting)} other functions of this file that have such a parameter"
        return Witness(Reason(why, around.module.path, awaiting[0].facts.at[0]), False)

    def _in_its_function(self, name: str, function: Function, around: Function) -> Witness | None:
        family = [around, *_inside(around)]
        awaiting = [f for f in family if name in f.facts.awaited]
        if not awaiting or function in awaiting or sum(f.is_async and name in f.facts.calls for f in family) > 1:
            return None
        if speaks_of_color(self._program, around):
            return None  # it chooses between the two
        why = f"`{name}(…)` is awaited elsewhere in `{around.qualname}`, whose parameter it is"
        return Witness(Reason(why, around.module.path, awaiting[0].facts.at[0]), False)

    def speak_of_method(self, name: str) -> Witness | None:
        """The same of a method of the project that is known: all who call one of that name await what it gives."""
        if name in GENERIC or self._counts.awaited_names[name] < _FEWEST_OF_NAME:
            return None
        counts = self._all_of(name)
        if not counts.of(_ANY).mostly(_FEWEST_OF_NAME, _VERY_FEW):
            return None
        return Witness(_told(f"….{name}", counts.awaited[_ANY], "in this project", counts.places[_ANY]), False)

    def speak_of_decorated(self, name: str) -> Reason | None:
        """The same of an `async def` that is known, only not what its decorators made of it: some await it."""
        if not self._counts.awaited_names[name]:
            return None
        counts = self._all_of(name)
        count = counts.of_async(_ANY, name)
        if not count.mostly(1, _SOME) or not self.is_awaited_by_others(name):
            return None
        return _told(f"….{name}", count.awaited, "in this project", counts.places[_ANY])

    def _by_identity(self, text: str, name: str, function: Function) -> Witness | None:
        """Something imported is the same wherever it is imported."""
        whole = self._identity(text, function)
        if not whole:
            return None
        counts = self._all_of(name)
        count = counts.of_async(whole, name)
        fewest = _FEWEST_HERE if name in GENERIC or name[0].isupper() or text in function.facts.awaited else 1
        if not count.mostly(fewest, _FEW):
            return None
        return Witness(_told(text, count.awaited, "in this project", counts.places[whole]), count.awaited > 1)

    def _in_this_place(self, text: str, name: str, function: Function) -> Witness | None:
        """The same words in the same class, or in the same file."""
        home = _home_of(function, text)
        awaited = self._counts.awaited_here[home, text]
        if not awaited or _is_of_another_kind(text, function) or self._is_made_otherwise(text, name, function):
            return None
        fewest = _FEWEST_HERE
        if name in GENERIC:
            if _is_local(text, function):
                if len(text.partition(".")[0]) < _SHORTEST:
                    return None  # `s.send` in another function is another `s`
                fewest = _FEWEST_OF_LOCAL
        elif text not in function.facts.awaited and (
            self._is_own_word(text, name) or (text.startswith(("self.", "cls.")) and len(name) >= _TELLING)
        ):
            fewest = 1
        count = _Count(awaited, self._all_of(name).of_async(f"{home} {text}", name).bare)
        if not count.mostly(fewest, _SOME):
            return None
        firm = awaited > _FEWEST_HERE and count.bare <= 1
        return Witness(_told(text, awaited, "in this file", self._counts.awaited_places[tail(text)]), firm)

    def _is_made_otherwise(self, text: str, name: str, function: Function) -> bool:
        """Whether the variable holds an object of one class here, and of another where the file awaits it."""
        root, _, attribute = text.partition(".")
        made = _class_made(root, function)
        if not made or attribute != name:
            return False
        beside = self._program.index.functions_naming({name})
        classes = {
            _class_made(root, other)
            for other in beside
            if other.module is function.module and text in other.facts.awaited
        }
        return "" not in classes and made not in classes

    def _is_own_word(self, text: str, name: str) -> bool:
        """Whether a method's name is of several words, and no sync function is called so: `client.fetch_thing`."""
        receiver = text.rpartition(".")[0]
        return (
            "_" in name.strip("_")
            and len(name) >= _TWO_WORDS
            and len(receiver) >= _SHORTEST
            and not self._counts.is_plain_somewhere(name)
        )

    def _by_words(self, text: str, name: str, function: Function, external: str) -> Witness | None:
        """The same receiver's name and the same method, anywhere."""
        key = tail(text)
        counts = self._all_of(name)
        count = counts.of(key)
        fewest = _FEWEST_OF_OTHERS if text.startswith("self.") else _FEWEST_ANYWHERE
        if name in GENERIC:
            if not is_telling(key) or (text == key and _is_local(text, function)):
                is_plain = self._counts.is_plain_somewhere(name)
                if count.bare > 1 and (is_plain or (count.bare - 1) * _NEARLY_NONE > count.awaited):
                    return None  # some objects of that name are others
                fewest = _FEWEST_OF_ALL
            fewest = max(fewest, _FEWEST_OF_GENERIC)
            if counts.of(_ANY).mostly(_FEWEST_OF_ALL, _NEARLY_NONE) and not self._counts.colors(name)[1]:
                fewest = _FEWEST_ANYWHERE  # nobody ever calls a method of that name without
        if _ASYNC_CLASS.search(external) and text.partition(".")[2] and external.endswith(name):
            fewest = 1  # the class is called async, and somebody awaits this method of it
            is_one_of_many = name in GENERIC and not _is_imported_there(external, counts.packages.get(_ANY))
            if _RESOURCE.search(external) and _VERB.match(name) and not is_one_of_many:
                place = self._all_of(name).places[_ANY]  # `client.users.create`: somebody awaits a `create`
                return Witness(Reason(f"`{external}` belongs to a class that is called async", *place), False)
        if is_of_async_module(external) and counts.of(_ANY).mostly(_FEWEST_OF_NAME, _FEW):
            place = counts.places[_ANY]
            return Witness(Reason(f"`{external}` comes from a module that is called async", *place), False)
        if not count.mostly(fewest, _FEW) or not _is_imported_there(external, counts.packages.get(key)):
            return None
        if is_far_from(self._program, function.module.path, counts.folders.get(key, ())):
            return None
        place = self._counts.awaited_places[key]
        if _is_local(text, function):
            root = text.partition(".")[0]
            if self._program.module(place[0]).imports_somewhere(root):
                return None  # there it is something imported, here a variable
        is_own_word = text == f"self.{name}" and name not in GENERIC and "_" in name.strip("_")
        many = _FEWEST_OF_OTHERS if is_own_word else _FEWEST_OF_ALL
        return Witness(_told(text, count.awaited, "in this project", place), count.mostly(many, _NEARLY_NONE))

    def _by_name(self, text: str, name: str, function: Function, external: str) -> Witness | None:
        """A method whose name is telling, on whatever receivers: all await it, and nobody does otherwise.

        Not of an object that is known to come from a library: those that are awaited may be of another one.
        """
        if "." not in text or name in GENERIC or name.startswith("__"):
            return None
        if len(name) < _TELLING or ("_" not in name.strip("_") and len(name) < _TWO_WORDS):
            return None
        if self._counts.awaited_names[name] < _FEWEST_OF_NAME:
            return None
        counts = self._all_of(name)
        if not counts.of(_ANY).mostly(_FEWEST_OF_NAME, _VERY_FEW) or self._counts.is_plain_somewhere(name):
            return None
        if name == function.name:
            return None  # a wrapper that hands the call on: its own color says nothing of the other's
        around = function.class_around
        if around is not None and name in around.methods and not text.startswith(("self.", "cls.")):
            return None  # a class that wraps another object has methods called like that one's
        if (
            self._counts.colors(name)[0]
            and not self._is_known_receiver(text, counts, function)
            and not counts.of(_ANY).mostly(_FEWEST_OF_ALL, _NEARLY_NONE)
        ):
            return None  # they await the project's own; this may be the namesake of a library
        if not _is_imported_there(external, counts.packages.get(_ANY)):
            return None
        if is_far_from(self._program, function.module.path, counts.folders.get(_ANY, ())):
            return None
        place = counts.places[_ANY]
        return Witness(_told(f"….{name}", counts.awaited[_ANY], "in this project", place), False)

    @staticmethod
    def _is_known_receiver(text: str, named: _Named, function: Function) -> bool:
        """Whether somebody awaits the method of a receiver of that name, or this function another method of it."""
        start = f"{text.rpartition('.')[0]}."
        return named.awaited[tail(text)] > 0 or any(callee.startswith(start) for callee in function.facts.awaited)

    def _by_neighbors(self, text: str, name: str, function: Function) -> Witness | None:
        """A variable whose other methods the same function awaits, where others await this one of a namesake."""
        receiver = text.rpartition(".")[0]
        if not receiver.isidentifier() or receiver in {"self", "cls"}:
            return None
        facts, start = function.facts, f"{receiver}."
        callees = [callee for callee in facts.awaited if callee.startswith(start) and callee != text]
        if not callees or any(callee.startswith(start) and callee != text for callee in facts.calls):
            return None
        counts = self._all_of(name)
        count = counts.of(text)
        if not count.mostly(_FEWEST_HERE, _SOME):
            return None
        return Witness(_told(text, count.awaited, "in this project", counts.places[text]), False)

    def _by_calls(self, text: str, name: str, external: str) -> Witness | None:
        """A method of what a call has just made, `message(…).send`: all over the project such are awaited."""
        if ")." not in text or text.startswith("super()"):
            return None
        key = f"?.{name}"
        counts = self._all_of(name)
        count = counts.of(key)
        if not count.mostly(_FEWEST_OF_ALL if count.bare > 1 else _FEWEST_OF_GENERIC, _VERY_FEW):
            return None
        if self._counts.is_plain_somewhere(name):
            return None
        if library.knows(external.partition(".")[0]):
            return None  # what its table does not say is not so
        return Witness(_told(f"(…).{name}", count.awaited, "in this project", counts.places[key]), False)

    def _all_of(self, name: str) -> _Named:
        """Who awaits callees of that last name and who does not: by identity, by place, by words, and at all."""
        counts = self._named.get(name)
        if counts is None:
            counts = _Named()
            for function in self._program.index.functions_naming({name}):
                place = (function.module.path, function.facts.at[0])
                for callee in _ending(function.facts.awaited, name):
                    for key in self._keys(callee, function):
                        counts.awaited[key] += 1
                        counts.places.setdefault(key, place)
                        counts.packages.setdefault(key, set()).update(function.module.packages)
                        counts.folders.setdefault(key, set()).add(folder_of(function.module.path))
                for callee in _ending(function.facts.calls, name):
                    for key in self._keys(callee, function):
                        counts.bare[key] += 1
                        counts.aside[key] += not function.is_async
            self._named[name] = counts
        return counts

    def _keys(self, callee: str, function: Function) -> Iterator[str]:
        yield f"{_home_of(function, callee)} {callee}"
        yield tail(callee)
        yield _ANY
        whole = self._identity(callee, function)
        if whole:
            yield whole

    def _identity(self, callee: str, function: Function) -> str:
        """The full name of something that is reached through an import; empty for anything else."""
        root, dot, attributes = callee.partition(".")
        origin = function.module.origin(root)
        return f"import {origin}{dot}{attributes}" if origin is not None and root not in function.params else ""


# What these numbers stand for is written in `words.toml`.
_FEWEST_HERE = threshold("call_sites", "fewest_here")
_FEWEST_PLAIN = threshold("call_sites", "fewest_plain")
_FEWEST_OF_LOCAL = threshold("call_sites", "fewest_of_local")
_FEWEST_ANYWHERE = threshold("call_sites", "fewest_anywhere")
_FEWEST_OF_OTHERS = threshold("call_sites", "fewest_of_others")
_FEWEST_OF_GENERIC = threshold("call_sites", "fewest_of_generic")
_FEWEST_OF_NAME = threshold("call_sites", "fewest_of_name")
_FEWEST_OF_ALL = threshold("call_sites", "fewest_of_all")
_SOME = threshold("call_sites", "some")
_FEW = threshold("call_sites", "few")
_VERY_FEW = threshold("call_sites", "very_few")
_NEARLY_NONE = threshold("call_sites", "nearly_none")
_ASIDE = threshold("call_sites", "aside")
_SHORTEST = threshold("call_sites", "shortest")
_TELLING = threshold("call_sites", "telling")
_TWO_WORDS = threshold("call_sites", "two_words")
_ANY = "*"
_VERB = pattern("resource_verb")
_ASYNC_CLASS = re.compile(r"\.(?:aio|asyncio)\.|(?:^|\.)(?:(?:Async|Aio)[A-Z]\w*|\w+Async)\(\)(?:\.\w+)+$")
_ASYNC_MODULE = re.compile(r"\.aio\.(?:\w+\.)*[A-Z]\w*\(\)\.\w+$")  # a method of its objects
_RESOURCE = re.compile(r"(?:^|\.)(?:(?:Async|Aio)[A-Z]\w*|\w+Async)\(\)(?:\.[a-z]\w*){2,}$")
_SHARED = words("libraries", "shared")
_REGISTERED = words("method_names", "registered")
_QUEUEING = words("receiver_names", "queueing")
COMMON_RECEIVERS = words("receiver_names", "common")


def _class_made(name: str, function: Function) -> str:
    """The class that a variable holds an object of, as its one assignment shows: `web.Server()`."""
    made = function.origins.get(name, "")
    return made if made.endswith("()") and made.rpartition(".")[2][:1].isupper() else ""


def _is_imported_there(external: str, packages: set[str] | None) -> bool:
    """Whether those who await it may mean the same library's: what another one calls so is another thing."""
    top = external.partition(".")[0]
    return not external or external == OF_NOBODY or (top in (packages or ()) and top not in _SHARED)


def _ending(callees: tuple[str, ...], name: str) -> Iterator[str]:
    for callee in callees:
        if " " not in callee and callee.rpartition(".")[2] == name:
            yield callee


def _inside(function: Function) -> Iterator[Function]:
    """The functions inside a function, however deep."""
    for index, _ in function.module.functions_in(function.index):
        inner = function.module.function(index)
        yield inner
        yield from _inside(inner)


def _told(text: str, awaited: int, where: str, place: tuple[str, int]) -> Reason:
    functions = "another function" if awaited == 1 else f"{awaited} other functions"
    return Reason(f"`{text}(…)` is awaited in {functions} {where}", *place)


def _is_of_another_kind(text: str, function: Function) -> bool:
    """Whether the functions beside this one, in one around them, all call it without awaiting: another object there."""
    around = function.parent
    if around is None or around.index == 0 or text.startswith(("self.", "cls.")):
        return False
    beside = [facts for _, facts in function.module.functions_in(around.index)]
    bare = sum(text in facts.calls for facts in beside)
    return bare > 1 and not any(text in facts.awaited for facts in beside)


def is_queued(text: str) -> bool:
    """Whether a callee only tells a pipeline or a batch what to do later: `batcher.users.create`."""
    return not _QUEUEING.isdisjoint(text.split(".")[:-1])


def is_of_async_module(external: str) -> bool:
    """Whether a method of a library belongs to an object out of a module that is called async."""
    return _ASYNC_MODULE.search(external) is not None


def is_telling(key: str) -> bool:
    """Whether a receiver's name says which object it is: `api_client`, not `client`."""
    receiver = key.partition(".")[0].strip("_")
    return "." in key and len(receiver) > _TELLING and receiver.isidentifier() and receiver not in COMMON_RECEIVERS


def _home_of(function: Function, callee: str) -> str:
    """The place in which the same words mean the same object: the file, or for `self` the class."""
    path = function.module.path
    if not callee.startswith(("self.", "cls.")):
        return path
    while function.owner is None and function.parent is not None:
        function = function.parent
    return f"{path} {function.qualname.rpartition('.')[0] if function.owner is not None else ''}"


def _is_local(text: str, function: Function) -> bool:
    """Whether the receiver is a variable of the function, not one of the module or of an object."""
    name = text.partition(".")[0]
    return name not in {"self", "cls"} and not function.module.binds_anywhere(name)
