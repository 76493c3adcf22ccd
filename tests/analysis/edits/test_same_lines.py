"""The lines that two texts have in common."""

from hypothesis import given, settings
from hypothesis import strategies as st

from troth.analysis.edits.same_lines import same_lines


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), max_size=14), st.lists(st.sampled_from("abcdefgh"), max_size=14))
def test_lines_of_both_texts(before, after):
    """What is said to be the same is the same, in the same order, and nothing of it twice; what is added costs nothing."""
    runs = same_lines(before, after)
    ends = (0, 0)
    for old, new, count in runs:
        assert (old, new) >= ends
        assert before[old : old + count] == after[new : new + count]
        ends = (old + count, new + count)
    assert ends == (len(before), len(after))
    longer = ["x", *before, "y"]
    assert sum(count for _, _, count in same_lines(before, longer)) >= len(set(before) - _twice(before))


def _twice(letters):
    return {letter for letter in letters if letters.count(letter) > 1}
