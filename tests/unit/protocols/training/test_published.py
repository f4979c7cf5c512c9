"""The published rows are those that the paper prints."""

from __future__ import annotations

import pytest

from surgeval.protocols.training import published, published_notes

NUMBERS = (4, 5, 8, 9, 11, 12, 14, 15)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_row_has_a_value_for_every_column(number: int) -> None:
    table = published(number)
    assert all(len(row.values) == len(row.spreads) == len(table.columns) for row in table.rows)
    assert all(value is None or 0 <= value <= 100 or column == "FPS" for row in table.rows
               for column, value in zip(table.columns, row.values, strict=True))  # fmt: skip


def test_values_that_were_read_from_the_paper_by_hand() -> None:
    assert published(4).row("TDnet").values == (89.9, 81.0, 61.7, 56.3, 55.7, 50.8, 36.1, 33.1, 126.6)
    assert published(4).row("RT-DETR").spreads == (0.9, 1.6, 4.7, 3.3, 2.4, 2.2, 3.8, 3.3, None)
    assert published(4).row("Tripnet-Det").values[1] is None
    assert published(5).row("TDnet").values == (34.7, 39.7, 32.8)
    assert published(8).row("TDnet").values[-2:] == (37.1, 33.9)
    assert published(9).row("TDnet w/o self-distill").values == (88.5, 80.5, 59.7, 55.0, 54.6, 50.7, 34.4, 31.8)
    assert [row.values[0] for row in published(11).rows] == [40.9, 40.8, 41.3, 41.6, 41.4]
    assert published(12).row("YOLOv12").values == (19.8, 20.7)
    assert published(14).row("TDnet").values == (0.0527, 0.2627, 0.0895, 0.0880, 0.4871)
    assert published(15).row("PWH").values == (15.4, 13.2, 13.9, 16.0, 14.3, 15.5, 16.2, 14.4, 16.0)


def test_the_averages_of_table_15_are_those_of_its_rows() -> None:
    *sources, average = published(15).rows
    for column, printed in enumerate(average.values):
        values = [row.values[column] for row in sources]
        assert printed == pytest.approx(sum(value for value in values if value is not None) / 3, abs=0.051)


def test_contradictions_are_named_and_true() -> None:
    notes = " ".join(published_notes(4))
    assert "31.8" in notes
    assert published(4).row("YOLOv12").values[7] == 31.5
    assert published(4).row("YOLOv10").values[7] == 31.8
    rt, td = published(4).row("RT-DETR").values, published(4).row("TDnet").values
    assert rt[0] is not None and td[0] is not None and rt[0] > td[0]
    spread = [row.values[0] for row in published(11).rows if row.values[0] is not None]
    assert max(spread) - min(spread) == pytest.approx(0.8)
    parts = published(14).row("TDnet").values
    assert sum(value for value in parts[:4] if value is not None) == pytest.approx(0.4929)
