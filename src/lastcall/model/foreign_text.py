"""Makes foreign text safe to display: names, annotations, messages, and the output of programs (pure)."""


def plain_text(text: str) -> str:
    """The text on one line, without terminal control characters and without characters that XML forbids."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def plain_lines(text: str, indent: str = "") -> str:
    """The same for text of several lines; ``indent`` precedes all lines but the first.

    Foreign text therefore cannot fake a log entry of its own.
    """
    return f"\n{indent}".join(map(plain_text, text.split("\n")))
