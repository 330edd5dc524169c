"""The text of a paper: read from a file of text, Markdown or PDF, without the matches of some patterns."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_super.errors import InfrastructureError
from pytest_super.tasks.paper import PaperText

REDACTED = "[redacted]"


def paper_text(paper: PaperText, base: Path) -> str:
    """What the agent reads. Raises InfrastructureError for no text, or a `redact` that matches nothing."""
    file = base / paper.file
    text = pdf_text(file) if file.suffix == ".pdf" else plain_text(file)
    if not text.strip():
        raise InfrastructureError(f"{file} has no text: a scanned PDF has to be read by OCR first")
    for pattern in paper.redact:
        text, count = re.subn(pattern, REDACTED, text)
        if not count:
            raise InfrastructureError(f"{file}: nothing matches the pattern {pattern!r} of `redact`")
    return text


def plain_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InfrastructureError(f"{file} cannot be read: {error}") from None


def pdf_text(file: Path) -> str:
    try:
        from pypdf import PdfReader
    except ImportError:
        raise InfrastructureError(
            f"{file}: reading PDF files needs a package: pip install 'pytest-super[pdf]'"
        ) from None
    try:
        return "\n".join(page.extract_text() for page in PdfReader(file).pages)
    # A damaged PDF makes the reader raise exceptions of many kinds.
    except Exception as error:
        raise InfrastructureError(f"{file} cannot be read: {error}") from error
