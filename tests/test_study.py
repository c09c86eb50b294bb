"""A page of measurements: its tables are found by words, and what is not there is named."""

import pytest

from attnlib.course import Study


@pytest.fixture
def study(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# All\n\nWords.\n\n## First\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n| y | 2,000 |\n\n"
        "Those in none:\n\n| a | b |\n| --- | --- |\n| z | 3 |\n\n## Last\n\nNo table here.\n",
        encoding="utf-8",
    )
    return Study(page)


def test_a_table_follows_a_heading_or_words(study):
    assert study.table("First").data == "| a | b |\n| --- | ---: |\n| x | 1 |\n| y | 2,000 |"
    assert study.table("Those").data == "| a | b |\n| --- | --- |\n| z | 3 |"


def test_rows_are_chosen_by_their_first_words_and_numbers_can_be_read(study):
    assert study.table("First", "y").data.splitlines()[2:] == ["| y | 2,000 |"]
    assert study.rows("First") == [["x", "1"], ["y", "2000"]]


@pytest.mark.parametrize("after", ["Second", "Last"])
def test_what_is_not_there_is_named_with_what_is(study, after):
    with pytest.raises(ValueError, match=f"'{after}'; it has: First, Last"):
        study.table(after)


def test_a_row_that_is_not_there_is_named(study):
    with pytest.raises(ValueError, match=r"no row of the table after 'First' in .* begins with q"):
        study.table("First", "q")
