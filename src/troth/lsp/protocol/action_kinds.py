"""Name the kinds of code actions that there are."""

from lsprotocol import types

__all__ = ["FIX_ALL", "KINDS", "QUICK", "REWRITE"]

FIX_ALL = "source.fixAll.troth"
QUICK = types.CodeActionKind.QuickFix.value
REWRITE = types.CodeActionKind.RefactorRewrite.value
KINDS = (QUICK, FIX_ALL, REWRITE)
