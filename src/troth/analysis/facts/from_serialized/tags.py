"""By which numbers `ast_serialize` tells the nodes of its trees apart, in the format that is asked of it."""

from typing import Final

__all__: list[str] = []  # they are asked for as `tags.CALL`

FORMAT: Final = 5  # of the bytes; other versions of the parser are asked for this one

TRUE: Final = 1
NONE: Final = 2
INT: Final = 3
STR: Final = 4
FLOAT: Final = 6
LIST: Final = 20
INTS: Final = 21
DICT: Final = 30
PLACE: Final = 152
END: Final = 255

# Definitions, types, and then all else.
DECORATED: Final = 53
CLASS: Final = 60
UNBOUND_TYPE: Final = 104
UNPACKED_TYPE: Final = 105
TUPLE_TYPE: Final = 112
DICT_TYPE: Final = 113
UNION_TYPE: Final = 115
LIST_TYPE: Final = 118
ELLIPSIS_TYPE: Final = 119
RAW_TYPE: Final = 120
CALL_TYPE: Final = 121
EXPRESSION: Final = 160
CALL: Final = 161
NAME: Final = 162
TEXT: Final = 163
IMPORT: Final = 164
MEMBER: Final = 165
OPERATION: Final = 166
NUMBER: Final = 167
IF: Final = 168
ASSIGN: Final = 169
TUPLE: Final = 170
BLOCK: Final = 171
INDEX: Final = 172
ITEMS: Final = 173
SET: Final = 174
RETURN: Final = 175
WHILE: Final = 176
COMPARE: Final = 177
BOOLEAN: Final = 178
DEF: Final = 179
PASS: Final = 180
REAL: Final = 181
UNARY: Final = 182
MAPPING: Final = 183
COMPLEX: Final = 184
SLICE: Final = 185
NO_VALUE: Final = 186
RAISE: Final = 187
BREAK: Final = 188
CONTINUE: Final = 189
GENERATOR: Final = 190
YIELD: Final = 191
YIELD_FROM: Final = 192
LIST_COMP: Final = 193
SET_COMP: Final = 194
DICT_COMP: Final = 195
IMPORT_FROM: Final = 196
ASSERT: Final = 197
FOR: Final = 198
WITH: Final = 199
AUGMENT: Final = 200
TRY: Final = 201
ELLIPSIS: Final = 202
CONDITIONAL: Final = 203
DELETE: Final = 204
FORMATTED: Final = 205
INTERPOLATION: Final = 206
LAMBDA: Final = 207
WALRUS: Final = 208
STAR: Final = 209
BYTES: Final = 210
GLOBAL: Final = 211
NONLOCAL: Final = 212
AWAIT: Final = 213
BIG_NUMBER: Final = 214
IMPORT_ALL: Final = 215
MATCH: Final = 216
AS_PATTERN: Final = 217
OR_PATTERN: Final = 218
VALUE_PATTERN: Final = 219
SINGLETON_PATTERN: Final = 220
SEQUENCE_PATTERN: Final = 221
STAR_PATTERN: Final = 222
MAPPING_PATTERN: Final = 223
CLASS_PATTERN: Final = 224
TYPE_ALIAS: Final = 225

# The kinds of arguments and parameters.
POSITIONAL: Final = 0  # kinds of arguments and parameters
OPTIONAL: Final = 1
ALL_POSITIONAL: Final = 2
NAMED: Final = 3
ALL_NAMED: Final = 4

# Operators.
NOT: Final = 1  # among unary operators
OR_BITS: Final = 9  # among binary ones
