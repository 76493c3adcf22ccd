"""Knows which findings are reported: where they are, which rule they are of, and how sure they are."""

from troth.analysis.checking.prepare import Prepared, check_selection
from troth.analysis.findings import Finding
from troth.analysis.selection import Selection, check_names
from troth.analysis.settings import Settings, find_settings

__all__ = ["Reported"]


class Reported:
    """A question that is put to each finding. The settings nearest to its file answer, and the command line first."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._by_folder: dict[str, tuple[Settings, Selection]] = {}
        self._found: dict[str, Settings] = {}
        self._selected: dict[Settings, Selection] = {}

    @property
    def on_request(self) -> tuple[str, ...]:
        """The codes of rules that are not on by default but selected for some file."""
        files = self._prepared.scope.reported
        folders = {path.rpartition("/")[0] for path in files}
        chosen = [self._of(f"{folder}/x" if folder else "x")[1] for folder in folders]
        rules = self._prepared.rules
        return tuple(code for code in rules.on_request if any(one.takes(code, rules.names[code]) for one in chosen))

    def __call__(self, finding: Finding) -> bool:
        """Whether `finding` is reported."""
        path = finding.span.path
        if path not in self._prepared.scope.reported:
            return False
        settings, _ = self._of(path)
        confidence = self._prepared.request.confidence or settings.confidence or "likely"
        if confidence == "certain" and finding.confidence != "certain":
            return False
        return self.is_on(path, finding.code, finding.rule)

    def is_on(self, path: str, code: str, name: str) -> bool:
        """Whether a rule is switched on for a file, whatever it finds there."""
        settings, selection = self._of(path)
        if not selection.takes(code, name):
            return False
        whole = self._prepared.root.path / path
        ignored = [names for patterns, names in settings.per_file_ignores or () if patterns.match(whole)]
        return all(Selection(ignore=names).takes(code, name) for names in ignored)

    def _of(self, path: str) -> tuple[Settings, Selection]:
        folder = path.rpartition("/")[0]
        if folder not in self._by_folder:
            settings = find_settings(self._prepared.root.path / folder, self._found)
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
        )
