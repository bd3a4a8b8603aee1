"""One face of a font file: its characters, their widths, and their outlines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from threading import RLock
from typing import Any, Literal

Outlines = Literal["glyf", "CFF", "pictures"]
PenCommand = tuple[str, tuple[Any, ...]]  # a pen command, and its points, in font units
_READ_LOCK = RLock()  # fontTools reads files lazily, so concurrent threads would interfere with each other


@dataclass(frozen=True)
class Font:
    """One face: a file, and the face's number within a collection."""

    path: str
    number: int = 0

    @cached_property
    def _tables(self) -> Any:
        from fontTools.ttLib import TTFont

        return TTFont(BytesIO(Path(self.path).read_bytes()), fontNumber=self.number, lazy=True)

    @cached_property
    def glyphs(self) -> dict[int, str]:
        """The glyph name of each code point."""
        with _READ_LOCK:
            return dict(self._tables.getBestCmap() or {})

    @cached_property
    def em(self) -> int:
        """The number of font units per em."""
        with _READ_LOCK:
            return int(self._tables["head"].unitsPerEm)

    @cached_property
    def family(self) -> str:
        """The family's name as used in style sheets."""
        return next((name for name in self.names(16, 1) if name), Path(self.path).stem)

    def names(self, *numbers: int) -> list[str]:
        """Return the texts with these numbers in the OpenType table "name"; "" for missing texts.

        Examples are copyright and licence.
        """
        with _READ_LOCK:
            names = self._tables["name"]
        return [str(names.getDebugName(number) or "") for number in numbers]

    @cached_property
    def outlines(self) -> Outlines:
        """The format of the outlines. PDF can embed "glyf" unchanged; "pictures" are colour emoji."""
        with _READ_LOCK:
            return detect_outlines(self._tables)

    @cached_property
    def middle(self) -> float:
        """The height above the baseline, in ems, at which a browser centres text: (ascent + descent) / 2."""
        with _READ_LOCK:
            metrics = self._tables["hhea"]
        return float(metrics.ascent + metrics.descent) / 2 / self.em

    @cached_property
    def _advances(self) -> dict[str, tuple[int, int]]:
        with _READ_LOCK:
            advances: dict[str, tuple[int, int]] = self._tables["hmtx"].metrics
        return advances

    def advance(self, character: str) -> float:
        """Return the width of one character, in ems."""
        return self._advances[self.glyphs[ord(character)]][0] / self.em

    @cached_property
    def _shapes(self) -> dict[int, list[PenCommand]]:
        return {}

    def shape(self, glyph: int) -> list[PenCommand]:
        """Return the outline of the glyph with that number, as pen commands.

        The commands are moveTo, lineTo, curveTo, qCurveTo and closePath.
        """
        if glyph not in self._shapes:
            from fontTools.pens.recordingPen import DecomposingRecordingPen

            with _READ_LOCK:
                shapes = self._glyph_set
                pen = DecomposingRecordingPen(shapes)
                shapes[self._tables.getGlyphName(glyph)].draw(pen)
                self._shapes[glyph] = pen.value
        return self._shapes[glyph]

    @cached_property
    def _glyph_set(self) -> Any:
        return self._tables.getGlyphSet()

    @cached_property
    def is_readable(self) -> bool:
        """Whether all parts of the file that are needed for measuring can be read."""
        try:
            return bool(self.glyphs and self.em and self.family and self._advances and self.middle is not None)
        except Exception:  # fontTools raises any exception, and a broken file must not prevent drawing
            return False


def detect_outlines(tables: Any) -> Outlines:
    """Return the format of the outlines in a font's tables."""
    if "sbix" in tables or ("COLR" in tables and tables["COLR"].version > 0):
        return "pictures"  # its outlines, if it has any, are empty
    if "glyf" in tables:
        return "glyf"
    return "CFF" if "CFF " in tables or "CFF2" in tables else "pictures"
