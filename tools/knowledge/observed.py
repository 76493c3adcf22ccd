"""What was seen of a package in the flesh, and lets it correct what was read."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from tools.knowledge.signatures import Signature

__all__ = ["Observed", "read_observed"]


@dataclass(slots=True)
class Observed:
    """The report of `introspect.py`. Empty where the package was only read."""

    colors: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    public: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    _by_owner: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, color in self.colors.items():
            owner, _, method = name.rpartition(".")
            self._by_owner.setdefault(owner, {})[method] = color

    def corrected(self, full: str, sig: Signature) -> Signature:
        """The signature, with the color that the real object has where a decorator hides it from the reader."""
        color = self.colors.get(full, "")
        if color in {"a", "g"} and color != sig.color:
            return sig.recolored(color)
        if sig.unknown_decorator and set(sig.color) & {"a", "g"} and color not in {"a", "g"}:
            # The wrapper is plain, or nobody saw it: what it gives back may be an awaitable or not.
            return sig.recolored("m" if color == "m" else "o")
        return sig

    def methods_of(self, class_name: str) -> dict[str, str]:
        """Names and colors of the methods that the class itself was seen to have."""
        return self._by_owner.get(class_name, {})


def read_observed(path: Path) -> Observed:
    """Read the report back."""
    report = json.loads(path.read_text(encoding="utf-8"))
    return Observed(report["colors"], report["aliases"], report["public"], report["failed"])
