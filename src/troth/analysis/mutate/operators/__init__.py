"""The operators, one file each; a new file in this directory is a new operator."""

import importlib
import pkgutil

from troth.analysis.mutate.operator import Operator

__all__ = ["all_operators"]


def all_operators() -> dict[str, Operator]:
    """Every operator by its name, in the order of their names."""
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    operators = [module.OPERATOR for module in modules]
    return {operator.name: operator for operator in sorted(operators, key=lambda operator: operator.name)}
