"""Name the places in the nodes of facts: `node[CALL_FUNC]`, where a number would say nothing.

A node is a plain tuple (see `facts/model.py`), so that `marshal` reads and writes it. These are the numbers of its
places; compiled code puts the number where the name stands, so that a name costs nothing.
"""

from typing import Final

__all__ = [
    "ANNASSIGN_ANNOTATION",
    "ANNASSIGN_TARGET",
    "ANNASSIGN_VALUE",
    "ASSIGN_TARGETS",
    "ASSIGN_VALUE",
    "AT",
    "ATTR_BASE",
    "ATTR_NAME",
    "AUGASSIGN_TARGET",
    "AUGASSIGN_VALUE",
    "BINOP_IS_BITOR",
    "BINOP_LEFT",
    "BINOP_RIGHT",
    "BODY",
    "CALL_ARGS",
    "CALL_FUNC",
    "CALL_KEYWORDS",
    "CLASS_NUMBER",
    "COMPARE_LEFT",
    "COMPARE_OPS",
    "COMPARE_OTHERS",
    "COMP_GENERATORS",
    "COMP_KIND",
    "COMP_PARTS",
    "CONST_TYPE",
    "CONST_VALUE",
    "DEF_FUNCTION",
    "DICT_KEYS",
    "DICT_VALUES",
    "FOR_BODY",
    "FOR_IS_ASYNC",
    "FOR_ITER",
    "FOR_ORELSE",
    "FOR_TARGET",
    "IMPORT_NAMES",
    "INDEX_BASE",
    "INDEX_KEY",
    "ITEMS",
    "KIND",
    "LAMBDA_BODY",
    "LAMBDA_PARAMS",
    "MATCH_CASES",
    "MATCH_SUBJECT",
    "NAME_ID",
    "ORELSE",
    "SCOPE_NAMES",
    "TEST",
    "TRY_BODY",
    "TRY_FINAL",
    "TRY_HANDLERS",
    "TRY_ORELSE",
    "VALUE",
    "WALRUS_NAME",
    "WALRUS_VALUE",
    "WITH_BODY",
    "WITH_IS_ASYNC",
    "WITH_ITEMS",
]

KIND: Final = 0  # what the node is; see `facts/nodes.py`
AT: Final = -1  # where it stands, if it says so

NAME_ID: Final = 1
ATTR_BASE: Final = 1
ATTR_NAME: Final = 2
CALL_FUNC: Final = 1
CALL_ARGS: Final = 2
CALL_KEYWORDS: Final = 3
CONST_TYPE: Final = 1
CONST_VALUE: Final = 2
INDEX_BASE: Final = 1
INDEX_KEY: Final = 2
DICT_KEYS: Final = 1
DICT_VALUES: Final = 2
COMPARE_LEFT: Final = 1
COMPARE_OPS: Final = 2
COMPARE_OTHERS: Final = 3
BINOP_LEFT: Final = 1
BINOP_RIGHT: Final = 2
BINOP_IS_BITOR: Final = 3
LAMBDA_PARAMS: Final = 1
LAMBDA_BODY: Final = 2
COMP_KIND: Final = 1
COMP_PARTS: Final = 2
COMP_GENERATORS: Final = 3
WALRUS_NAME: Final = 1
WALRUS_VALUE: Final = 2
ASSIGN_TARGETS: Final = 1
ASSIGN_VALUE: Final = 2
ANNASSIGN_TARGET: Final = 1
ANNASSIGN_ANNOTATION: Final = 2
ANNASSIGN_VALUE: Final = 3
AUGASSIGN_TARGET: Final = 1
AUGASSIGN_VALUE: Final = 2
FOR_IS_ASYNC: Final = 1
FOR_TARGET: Final = 2
FOR_ITER: Final = 3
FOR_BODY: Final = 4
FOR_ORELSE: Final = 5
WITH_IS_ASYNC: Final = 1
WITH_ITEMS: Final = 2
WITH_BODY: Final = 3
TRY_BODY: Final = 1
TRY_HANDLERS: Final = 2
TRY_ORELSE: Final = 3
TRY_FINAL: Final = 4
MATCH_SUBJECT: Final = 1
MATCH_CASES: Final = 2
IMPORT_NAMES: Final = 1
SCOPE_NAMES: Final = 1
DEF_FUNCTION: Final = 1
CLASS_NUMBER: Final = 1
ITEMS: Final = 1  # of list, tuple, set, and, or, fstr, parts, slice, del
VALUE: Final = 1  # of await, not, yieldfrom, star, expr, yield, return, raise
TEST: Final = 1  # of if, while, ifexp, assert
BODY: Final = 2  # of if, while, ifexp
ORELSE: Final = 3  # of if, while, ifexp
