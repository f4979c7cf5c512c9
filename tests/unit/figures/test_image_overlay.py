"""Words, lines and maps on images."""

from __future__ import annotations

import numpy as np

from surgeval.figures.image_overlay import Sheet, blend, draw_text, heat_colours, text_height, text_plate, text_width


def test_the_font_of_the_package_has_the_letters_of_class_names_and_arrows() -> None:
    missing = text_plate("\U0001f600", 20, "#ffffff", "#000000")
    for letter in "éßøŁñαβЖ→≥−×·…€²␣":
        drawn = text_plate(letter, 20, "#ffffff", "#000000")
        assert (drawn < 128).any(), letter
        assert drawn.shape != missing.shape or (drawn != missing).any(), letter


def test_a_text_is_drawn_where_it_is_put_and_cut_at_the_edge_of_the_image() -> None:
    image = np.full((30, 100, 3), 255, np.uint8)
    draw_text(image, "hook", (10, 5), 14)
    columns = np.flatnonzero((image < 128).any(axis=(0, 2)))
    assert columns[0] >= 10
    assert columns[-1] <= 10 + text_width("hook", 14)
    draw_text(image, "a name that is much longer than the image is wide", (80, 25), 14)
    draw_text(image, "outside", (300, 300), 14)
    assert text_height(14) > 14


def test_a_map_runs_from_blue_to_red_and_is_laid_over_the_image() -> None:
    colours = heat_colours(np.array([[0.0, 0.5, 1.0]]))
    assert colours[0, 0, 2] > colours[0, 0, 0]
    assert colours[0, 2, 0] > colours[0, 2, 2]
    image = np.zeros((1, 3, 3), np.uint8)
    mask = np.array([[False, False, True]])
    mixed = blend(image, colours, 0.5, mask)
    assert (mixed[0, :2] == 0).all()
    assert mixed[0, 2].tolist() == [round(0.5 * value) for value in colours[0, 2].tolist()]


def test_lines_discs_and_labels_are_drawn_at_their_places() -> None:
    sheet = Sheet(100, 60)
    sheet.line((10, 30), (90, 30), "#000000", 2)
    sheet.disc((20, 10), 5, "#ff0000")
    sheet.label((60, 50), "hook", 12, "#ffe14d")
    sheet.arrow((10, 40), (90, 40), ("tail", "arrow"), "#0000ff", "#000000")
    sheet.dashes((5, 5, 95, 55), "#00ff00")
    image = sheet.image().astype(int)
    assert image.shape == (60, 100, 3)
    assert (image[30, 15:60] < 60).all()
    assert image[10, 20].tolist() == [255, 0, 0]
    assert (image[5, 5:95, 1] - image[5, 5:95, 0] > 100).any()
