"""Text of others, such as names, annotations, messages and what programs print, made safe to be shown to people. Pure."""


def plain_text(text: str) -> str:
    """Foreign text on one line, without anything that steers a terminal or is no XML character."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def plain_lines(text: str, indent: str = "") -> str:
    """The same for text that may have several lines: those after the first begin with ``indent``.

    So no line of a log that foreign text has begun can be taken for an entry of its own.
    """
    return f"\n{indent}".join(map(plain_text, text.split("\n")))
