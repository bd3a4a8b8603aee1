"""Simulate colours in greyscale print, and as people with a colour vision deficiency see them.

Matrices: the table of pre-computed matrices that the authors published as supplementary data of G. M. Machado, M. M.
Oliveira and L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE
Transactions on Visualization and Computer Graphics 15(6), 2009, pp. 1291-1298, doi 10.1109/TVCG.2009.113
(https://www.inf.ufrgs.br/~oliveira/pubs_files/CVD_Simulation/CVD_Simulation.html): protanomaly, deuteranomaly and
tritanomaly of severity 1.0, from linear RGB to linear RGB. All 27 numbers agree with those of that table in
colorspacious (``colorspacious/cvd.py``, severity 100) and in colour-science
(``colour/blindness/datasets/machado2010.py``, severity 1.0). The curve of sRGB, and luminance: IEC 61966-2-1. Contrast:
WCAG 2.2, "contrast ratio".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Colours = npt.NDArray[np.float64]  # [..., rgb], sRGB from 0 to 255

LUMINANCE = (0.2126, 0.7152, 0.0722)
VISIONS = {
    "grey": np.array([LUMINANCE, LUMINANCE, LUMINANCE]),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linearise(colours: npt.ArrayLike) -> Colours:
    """Return the linear light of sRGB colours, 0 to 1."""
    share = np.asarray(colours, np.float64) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def simulate_vision(colours: npt.ArrayLike, vision: str) -> Colours:
    """Return the linear light of sRGB colours [..., rgb], 0 to 1, as seen by one of VISIONS."""
    return np.clip(linearise(colours) @ VISIONS[vision].T, 0, 1)


def compute_luminance(colours: npt.ArrayLike, vision: str) -> Colours:
    """Return the luminance [...] of sRGB colours as seen by one of VISIONS."""
    light: Colours = simulate_vision(colours, vision) @ np.array(LUMINANCE)
    return light


def compute_contrast(one: npt.ArrayLike, other: npt.ArrayLike, vision: str) -> Colours:
    """Return the contrast of two colours as seen by one of VISIONS, from 1 (none) to 21."""
    a, b = compute_luminance(one, vision), compute_luminance(other, vision)
    ratio: Colours = (np.maximum(a, b) + 0.05) / (np.minimum(a, b) + 0.05)
    return ratio


def parse_rgb(colour: str) -> list[int]:
    return list(bytes.fromhex(colour.removeprefix("#")))
