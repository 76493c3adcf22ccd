"""Loop misuse: a loop started inside a loop, and code that holds a loop up."""
