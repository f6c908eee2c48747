"""Small tables for people who look at an object: as text in a terminal, as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Rows = Sequence[Sequence[object]]


def text_table(header: Sequence[str], rows: Rows) -> str:
    """Columns one beside the other; numbers, which are right-aligned, are given as numbers."""
    cells = [[str(cell) for cell in header], *([_number(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    right = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(header))]
    lines = (
        "  ".join(
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(row, widths, right, strict=True)
        )
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def html_table(title: str, header: Sequence[str], rows: Rows) -> str:
    """A table with a title; everything is escaped, names being anybody's choice."""
    head = "".join(f"<th style='text-align:left'>{escape(str(cell))}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(_html_cell(cell) for cell in row)}</tr>" for row in rows)
    caption = f"<caption style='text-align:left'><b>{escape(title)}</b></caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_cell(cell: object) -> str:
    side = "right" if isinstance(cell, int | float) else "left"
    return f"<td style='text-align:{side}'>{escape(_number(cell))}</td>"


def _number(cell: object) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.3g}"
