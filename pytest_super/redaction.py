"""Secrets: which variables and parameters contain one, and messages without their values."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from pytest_super.json_values import texts

# Secrets as the last word of a name: `GITHUB_PAT`, `x-api-key`.
SECRET_WORDS = frozenset(
    ("auth", "bearer", "cookie", "headers", "jwt", "key", "keys", "pass", "pat", "pwd", "sas", "sshpass")
)
# Secrets anywhere in a name, also within a word: `HFTOKEN`, `PGPASSWORD`, `AWS_ACCESS_KEY_ID`.
SECRET_PARTS = re.compile(
    # `token(?!…)` does not match `TOKENIZERS_PARALLELISM`, `stop_token_ids` and counts.
    r"authorization|secret|passw(or)?d|passphrase|credential|api_?key|access_?key|_key_|connection_?string"
    r"|webhook|token(?!iz|s?_(ids?|count|limit|type))",
    re.IGNORECASE,
)
# Words before `tokens` in the names of counts, such as `max_output_tokens`.
COUNTED_NAMES = """
    max min new num total budget thinking reasoning input output prompt completion special stop bad
"""
COUNTED = frozenset(COUNTED_NAMES.split())
HARMLESS_ENDS = (["per", "token"], ["cache", "key"])
# Single words that name folders.
FOLDERS = frozenset({"pwd", "oldpwd"})
# Capitals begin words as well: `accessToken`, `maxOutputTokens`.
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# A possible name within a value, such as a key of a mapping.
NAME_IN_VALUE = re.compile(r"[\w-]+(?=[\"']?\s*[:=])")
LOGIN_IN_ADDRESS = re.compile(r"(?<=://)[^/@\s]+@")
PASSWORD_IN_ADDRESS = re.compile(r"(?<=://)[^/@\s]*:([^/@\s]*)(?=@)")
# A shorter value could be a word of the message.
SHORTEST_SECRET = 8
MARK = "[key]"


def is_secret_name(name: str) -> bool:
    """Whether a variable, parameter or header of this name contains a secret."""
    words = [word.lower() for word in WORDS.findall(name)]
    is_count = words[-1:] == ["tokens"] and not COUNTED.isdisjoint(words[-2:-1])
    if not words or is_count or words[-2:] in HARMLESS_ENDS or name.lower() in FOLDERS:
        return False
    return words[-1] in SECRET_WORDS or bool(SECRET_PARTS.search(name))


def is_secret(name: str, value: str) -> bool:
    """Whether a program must not get this variable. A proxy's address, its only way out, is allowed."""
    has_password = bool(PASSWORD_IN_ADDRESS.search(value)) and not name.lower().endswith("_proxy")
    return has_password or is_secret_name(name)


def may_hold_secret(text: str) -> bool:
    """Whether `NAME=VALUE` contains a secret's name, also in its value, or an address with a password."""
    name, _, value = text.partition("=")
    is_named = any(map(is_secret_name, [name, *NAME_IN_VALUE.findall(value)]))
    return is_named or bool(PASSWORD_IN_ADDRESS.search(value))


def without_secret(text: str) -> str:
    """`NAME=VALUE` for a message; only the name if it may hold a secret."""
    return text.partition("=")[0] if may_hold_secret(text) else text


def environment_secrets() -> Iterator[str]:
    """The values of variables with a secret's name, and the passwords in addresses such as a proxy's.

    The path of an existing file is not a secret: messages are about it.
    """
    for name, value in os.environ.items():
        if is_secret_name(name) and not (os.path.isabs(value) and os.path.exists(value)):
            yield value
        for password in PASSWORD_IN_ADDRESS.findall(value):
            yield unquote(password)


def secrets_in(parameters: Mapping[str, Any]) -> list[str]:
    """The keys among the user's parameters. Of a header such as `Bearer KEY`, only the last word."""
    named = [value for name, value in parameters.items() if is_secret_name(name)]
    return [value.split()[-1] for value in texts(named) if value.strip()]


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with a mark for each of `secrets`, also as quoted in a URL, and without logins in addresses.

    Secrets shorter than SHORTEST_SECRET stay, because they could be words of the message.
    """
    stripped = {secret.strip() for secret in secrets}
    written = {form for secret in stripped for form in (secret, quote(secret, safe=""))}
    # The longest first: one secret can be the beginning of another.
    for secret in sorted(written, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, MARK)
    return redacted(text)


def redacted(text: str) -> str:
    """The text without logins in addresses."""
    return LOGIN_IN_ADDRESS.sub("", text)
