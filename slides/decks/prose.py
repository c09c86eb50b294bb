"""Markdown in paragraphs, sentences and lines: formulas, code and bold words are never cut."""

from __future__ import annotations

import math
import re

ACROSS = 66  # letters on a line of a slide, with room to spare
KEPT = re.compile(
    r"\$\$.*?\$\$|\$[^$\n]+?\$|`[^`]+`|\*\*.+?\*\*|(?<!\*)\*(?![\s*]).+?(?<![\s*])\*(?!\*)|\]\([^)]*\)", re.DOTALL
)
END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)[)”\"]*\s+(?=[A-Z\"“($*`\d\x00])")
ASKED = re.compile(r"(?<!\*)\*(?![\s*])([^*]+(?:\*\*[^*]+\*\*[^*]+)*)\*(?!\*)")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\([^)]*\)")


def paragraphs(markdown: str) -> list[str]:
    """The parts between blank lines; a formula of several lines is one part."""
    masked, kept = _masked(markdown, re.compile(r"\$\$.*?\$\$", re.DOTALL))
    return [_unmasked(part, kept).strip() for part in re.split(r"\n\s*\n", masked) if part.strip()]


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, each as it is written."""
    masked, kept = _masked(" ".join(paragraph.split()), KEPT)
    # A formula, a term or a question that ends a sentence ends it with its own stop.
    masked = re.sub("\x00(\\d+)\x01", lambda found: _stopped(found, kept), masked)
    return [_unmasked(part, kept) for part in END.split(masked) if part.strip()]


def _stopped(found: re.Match[str], kept: list[str]) -> str:
    span = kept[int(found.group(1))]
    return found.group() + ("\x02." if re.search(r"[.?!][”\"]?\*+$", span) else "")


def _masked(text: str, pattern: re.Pattern[str]) -> tuple[str, list[str]]:
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found.group())
        return f"\x00{len(kept) - 1}\x01"

    return pattern.sub(keep, text), kept


def _unmasked(text: str, kept: list[str]) -> str:
    text = text.replace("\x02.", "")
    return re.sub("\x00(\\d+)\x01", lambda found: kept[int(found.group(1))], text)


def question_in(paragraph: str) -> str:
    """What a paragraph asks the reader to commit to, in italics: all of a short one, or its italic part."""
    text = " ".join(paragraph.split())
    if text.startswith(("#", "- ", "|", "$$", "**")) or text.count("*") < 2:
        return ""
    asked = [span for span in ASKED.findall(LINK.sub(r"\1", text)) if span[-1] in "?." and len(span.split()) > 3]
    if not asked:
        return ""
    if len(text) <= 3.2 * ACROSS:
        return text
    return " ".join(f"*{span}*" for span in asked)


def plain(markdown: str) -> str:
    """Roughly what is seen of a piece of Markdown: for counting letters."""
    text = LINK.sub(r"\1", markdown)
    text = re.sub(r"\$([^$]+)\$", lambda found: "x" * _width(found.group(1)), text)
    return re.sub(r"\*\*|(?<!\w)\*|\*(?!\w)|`", "", text)


def _width(formula: str) -> int:
    """About how many letters a formula within a line is wide."""
    bare = re.sub(r"\\(?:text|operatorname|mathrm)\{([^}]*)\}", r"\1", formula)
    bare = re.sub(r"\\[A-Za-z]+|\\.", "x", bare)
    return max(1, round(0.75 * len(re.sub(r"[{}^_\s]", "", bare))))


def lines(markdown: str, across: float = ACROSS) -> int:
    """On how many lines of a slide a text will stand."""
    return max(1, math.ceil(len(plain(markdown)) / across))


def first(items: list[str], most: int) -> list[str]:
    """The first sentence, and those after it while all together stand on ``most`` lines."""
    found: list[str] = []
    for item in items:
        if found and lines(" ".join([*found, item])) > most:
            break
        found.append(item)
    return found
