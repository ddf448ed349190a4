from zerolayer_dev.testing.tables import table


def test_columns_are_aligned_and_lines_end_without_blanks() -> None:
    assert table(("a", "bb"), [("long", "x"), ("s", "yyyy")]) == ["a     bb", "long  x", "s     yyyy"]
