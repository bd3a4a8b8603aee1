"""Take screenshots, and measure visible differences between them."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageChops

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from playwright.sync_api import Page

LEVELS = np.arange(256) / 255  # of red, green and blue in a screenshot
LINEAR = np.where(LEVELS <= 0.04045, LEVELS / 12.92, ((LEVELS + 0.055) / 1.055) ** 2.4).astype(np.float32)


def take_still(page: Page) -> bytes:
    """Return a screenshot once two consecutive ones are equal."""
    last = page.screenshot()
    for _ in range(50):
        current = page.screenshot()
        if current == last:
            return current
        previous, last = last, current
    raise AssertionError(f"The page keeps changing, within {find_changed_box(previous, last)}.")


def find_changed_box(one: bytes, other: bytes) -> tuple[int, int, int, int] | None:
    """Return (left, top, right, bottom) of the box around all differing pixels; None if there are none."""
    first, second = (Image.open(BytesIO(image)).convert("RGB") for image in (one, other))
    return ImageChops.difference(first, second).getbbox()


def luminance(screenshot: bytes) -> NDArray[np.float32]:
    """Return the relative luminance (WCAG) of each pixel."""
    red, green, blue = np.moveaxis(np.asarray(Image.open(BytesIO(screenshot)).convert("RGB")), 2, 0)
    relative: NDArray[np.float32] = 0.2126 * LINEAR[red] + 0.7152 * LINEAR[green] + 0.0722 * LINEAR[blue]
    return relative


def measure_difference(one: bytes, other: bytes) -> float:
    """Return the share of pixels whose contrast between two screenshots is at least 3 : 1.

    Only the area that both cover counts.
    """
    first, second = luminance(one), luminance(other)
    height, width = (min(sizes) for sizes in zip(first.shape, second.shape, strict=True))
    first, second = first[:height, :width], second[:height, :width]
    contrast = (np.maximum(first, second) + 0.05) / (np.minimum(first, second) + 0.05)
    return float((contrast >= 3).mean())
