"""Rewrites optional fields and items (``self.?spec``, ``self[?'a']``) as calls that the library can parse (pure)."""

import re
from collections.abc import Iterator

FUNCTION = "optionalField"

_WORD = re.compile(
    r"""[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|\.\?\s*[A-Za-z_]\w*|\[\?|\w+|\s+|.""",
    re.DOTALL,
)


def rewrite_optionals(expression: str) -> str:
    """Rewrites ``a.?b[?c]`` as ``a.optionalField("b").optionalField(c)``; keeps everything else."""
    if ".?" not in expression and "[?" not in expression:
        return expression
    return "".join(_words(expression))


def _words(expression: str) -> Iterator[str]:
    closings: list[str] = []
    before = ""
    for found in _WORD.finditer(expression):
        word = found[0]
        if word.startswith(".?"):
            yield f'.{FUNCTION}("{word[2:].strip()}")'
        elif word == "[?" and re.search(r"[\w)\]'\"]$", before):
            closings.append(")")
            yield f".{FUNCTION}("
        elif word in ("[", "[?"):
            closings.append("]")
            yield word
        else:
            yield closings.pop() if word == "]" and closings else word
        before = word if word.strip() else before
