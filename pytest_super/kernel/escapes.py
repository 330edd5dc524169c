r"""The grammar of terminal escape sequences, as parts of regular expressions for what follows `\x1b`.

Two modules read terminal output. They share only this grammar, because they need different texts.
`kernel.terminal_text` returns what a terminal shows in the end, for the agent: a progress bar overwrites
itself. `metrics.matching.plain_text` returns everything that was printed, for landmarks: a loss that the next
one overwrote was printed too. It also has to read a stream, in constant memory.
"""

from __future__ import annotations

# A control sequence (colours, cursor) without its last character. The bounds are far above what programs
# print, so that a stream never has to wait for long.
CONTROL = r"\[[0-?]{0,64}+[ -/]{0,8}+"
CONTROL_END = "[@-~]"

# A string sequence (title, hyperlink, picture): its first character, and its end. The content is any text
# without these two characters.
STRING = r"[\]PX^_]"
STRING_END = r"(?:\x07|\x1b\\)"

# A choice of character set, or a function of one character.
SINGLE = r"[ -/]{1,8}+[0-~]|[0-OQ-WYZ\\`-~]"
