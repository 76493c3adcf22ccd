"""Write a name with its article into a sentence: an `Order`, a `User`."""

__all__ = ["with_article"]


def with_article(name: str) -> str:
    """The name in backticks behind the indefinite article that its first letter asks for."""
    return f"{'an' if name.lstrip('_')[:1].lower() in set('aeiou') else 'a'} `{name}`"
