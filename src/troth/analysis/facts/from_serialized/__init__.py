"""Read the facts of a file from the bytes in which `ast_serialize` writes its syntax tree.

That parser takes a sixth of the time of `ast.parse`, most of which goes into making an object for every node of a tree
that is read once and thrown away. Its tree is a row of bytes: a tag for each node, then what the node consists of, then
its place. Read by compiled code, it becomes facts without anything in between.

It is made for another reader, so some things are not as `ast` has them, and those are taken from the text: what an
annotation says, the lines of `except:`, whether a `with` is async. Whatever cannot be told for sure is refused, and the
file is read by `ast`.
"""
