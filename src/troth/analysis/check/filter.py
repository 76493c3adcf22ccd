"""Find which findings are reported: where they are, which rule they are of, and how sure they are."""

from collections.abc import Iterator

from troth.analysis.check.prepare import Prepared, check_selection
from troth.analysis.crash import Crash
from troth.analysis.findings import Finding
from troth.analysis.old_codes import OldCode, is_old
from troth.analysis.selection import Selection, check_names, meant
from troth.analysis.settings import Settings
from troth.analysis.source.allow import Allow

__all__ = ["Reported"]


class Reported:
    """A question that is put to each finding. The settings nearest to its file answer, and the command line first."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._by_folder: dict[str, tuple[Settings, Selection]] = {}
        self._settings_of: dict[str, Settings] = {}
        self._selected: dict[Settings, Selection] = {}
        self._may_report = prepared.scope.told
        self._files = frozenset(prepared.scope.project.files)

    @property
    def on_request(self) -> tuple[str, ...]:
        """The codes of rules that are not on by default but selected for some file."""
        files = self._prepared.scope.reported
        folders = {path.rpartition("/")[0] for path in files}
        chosen = [self._of(f"{folder}/x" if folder else "x")[1] for folder in folders]
        rules = self._prepared.rules
        return tuple(
            code for code in rules.on_request if any(choice.takes(code, rules.names[code]) for choice in chosen)
        )

    def __call__(self, finding: Finding) -> bool:
        """Whether `finding` is reported."""
        path = finding.span.path
        if path not in self._may_report:
            return False
        settings, _ = self._of(path)
        confidence = self._prepared.request.confidence or settings.confidence or "likely"
        if confidence == "certain" and finding.confidence != "certain":
            return False
        return self.is_on(path, finding.code, finding.rule)

    def is_missed(self, crash: Crash) -> bool:
        """Whether something is missing in the report because of an exception of our own."""
        if not crash.path or crash.path not in self._files:
            return True
        if crash.path not in self._may_report:
            return False
        return not crash.rule or self.is_on(crash.path, crash.rule, self._prepared.names.get(crash.rule, ""))

    def is_on(self, path: str, code: str, name: str) -> bool:
        """Whether a rule is switched on for a file, whatever it finds there."""
        settings, selection = self._of(path)
        if not selection.takes(code, name):
            return False
        whole = self._prepared.root.path / path
        ignored = [names for patterns, names in settings.per_file_ignores or () if patterns.match(whole)]
        return all(Selection(ignore=tuple(map(meant, names))).takes(code, name) for names in ignored)

    def obeys(self, comment: Allow) -> bool:
        """Whether a comment counts where it stands: one for another linter does unless that is switched off."""
        if not comment.codes:
            return True
        return self._prepared.request.foreign_comments and self._of(comment.span.path)[0].foreign_comments is not False

    def old_codes(self) -> Iterator[OldCode]:
        """The old codes in the options, and in the settings that were looked at."""
        request = self._prepared.request
        for option in ("select", "extend_select", "ignore"):
            old = [word.upper() for word in getattr(request, option) or () if is_old(word.upper())]
            yield from (OldCode(word, f"`--{option.replace('_', '-')}`") for word in old)
        for settings in self._selected:
            words = (*(settings.select or ()), *(settings.extend_select or ()), *(settings.ignore or ()))
            ignored = [word for _, names in settings.per_file_ignores or () for word in names]
            old = [word for word in (*words, *ignored) if is_old(word.upper())]
            yield from (OldCode(word.upper(), settings.place_of(word)) for word in old)

    def _of(self, path: str) -> tuple[Settings, Selection]:
        folder = path.rpartition("/")[0]
        if folder not in self._by_folder:
            settings = self._prepared.configuration.of(self._prepared.root.path / folder, self._settings_of)
            if settings not in self._selected:  # most folders have those of the project
                self._selected[settings] = self._selection(settings)
            self._by_folder[folder] = settings, self._selected[settings]
        return self._by_folder[folder]

    def _selection(self, settings: Settings) -> Selection:
        request, names = self._prepared.request, self._prepared.names
        check_selection(request, settings, names)
        select = request.select if request.select is not None else settings.select or ()
        ignore = (*(settings.ignore or ()), *request.ignore)
        return Selection(
            check_names(select, names, "select"),
            check_names(ignore, names, "ignore"),
            self._prepared.rules.on_request,
            check_names((*(settings.extend_select or ()), *request.extend_select), names, "extend-select"),
        )
