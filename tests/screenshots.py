"""Screenshots as numbers: what a person can tell apart in two of them."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from playwright.sync_api import Page


def still(page: Page) -> bytes:
    """A screenshot once the page has come to rest: two in a row are equal."""
    earlier = page.screenshot()
    for _ in range(50):
        later = page.screenshot()
        if later == earlier:
            return later
        earlier = later
    raise AssertionError("The page does not come to rest.")


def luminance(screenshot: bytes) -> NDArray[np.float64]:
    """The relative luminance (WCAG) of each pixel."""
    colours = np.asarray(Image.open(BytesIO(screenshot)).convert("RGB")) / 255
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    relative: NDArray[np.float64] = linear @ [0.2126, 0.7152, 0.0722]
    return relative


def differing(one: bytes, other: bytes) -> float:
    """The share of pixels whose contrast between two screenshots is at least 3 : 1, in the part that both cover."""
    first, second = luminance(one), luminance(other)
    height, width = (min(sizes) for sizes in zip(first.shape, second.shape, strict=True))
    first, second = first[:height, :width], second[:height, :width]
    contrast = (np.maximum(first, second) + 0.05) / (np.minimum(first, second) + 0.05)
    return float((contrast >= 3).mean())
