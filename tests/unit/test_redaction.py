"""Which names hold a secret, and that no message contains one."""

import os
import string
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_super.model.explanation import MAX_MESSAGE, explain
from pytest_super.redaction import MARK, is_secret, is_secret_name, may_hold_secret, redact

SECRETS = """
    OPENAI_API_KEY ANTHROPIC_AUTH_TOKEN AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID GITHUB_TOKENS api_key apikey
    MYSQL_PASSWORD PGPASSWD GOOGLE_APPLICATION_CREDENTIALS vertex_credentials key KEYS SSH_KEY_PATH token
    x-api-key Authorization extra_headers OTEL_EXPORTER_OTLP_HEADERS client_secret aws_session_token
    GITHUB_PAT AZURE_DEVOPS_EXT_PAT DB_PASS SSHPASS SNOWFLAKE_JWT HFTOKEN accessToken INPUT_API_KEY
    MYSQL_PWD BLOB_SAS AZURE_STORAGE_CONNECTION_STRING SESSION_COOKIE PRIVATE_KEY privateKey GPG_PASSPHRASE
    NPM_AUTH NPM_TOKEN SLACK_WEBHOOK_URL HF_TOKEN_PATH NEW_TOKEN
"""
OTHERS = """
    max_tokens max_completion_tokens max_output_tokens input_cost_per_token output_cost_per_token
    budget_tokens MAX_NEW_TOKENS TOKENIZERS_PARALLELISM KEYBOARD MONKEY prompt_cache_key temperature HOME PATH
    top_k PWD OLDPWD KEYBOARD_LAYOUT SSH_AUTH_SOCK XAUTHORITY GIT_ASKPASS BYPASS COMPASS PYTHONPATH MANPATH
    PATTERN HOTKEY maxTokens maxOutputTokens stop_token_ids skip_special_tokens PYTHON_KEYRING_BACKEND AUTHOR
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_names_of_secrets_are_recognised(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", [*OTHERS.split(), ""])
def test_other_names_are_not_taken_for_secrets(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("api_base=http://me:hidden@host/v1", True),
        ("api_base=http://host:8000/v1", False),
        ('extra_body={"auth": {"token": "k"}}', True),
        ('extra_body={"api_key": "k"}#=x', True),
        ('thinking={"type": "enabled", "budget_tokens": 1024}', False),
        ('extra_body={"user": "me", "db_pass": "x"}', True),
        ("stop=pass", False),
        ('stop=["token", "key"]', False),
    ],
)
def test_a_parameter_can_hold_a_secret_in_its_value(text: str, is_one: bool) -> None:
    assert may_hold_secret(text) is is_one


@pytest.mark.parametrize(
    ("name", "value", "is_one"),
    [
        ("GITHUB_PAT", "", True),
        ("DATABASE_DSN", "postgres://me:hidden@host/db", True),
        ("DATABASE_DSN", "postgres://host/db", False),
        ("https_proxy", "http://me:hidden@proxy:3128", False),
        ("PWD", "/home/me", False),
    ],
)
def test_a_variable_is_a_secret_by_its_name_or_by_a_password_except_in_a_proxy(
    name: str, value: str, is_one: bool
) -> None:
    assert is_secret(name, value) is is_one


def message_of(said: str, secret: str, name: str = "GITHUB_PAT") -> str:
    with patch.dict(os.environ, {name: secret}, clear=True):
        return explain(ConnectionError(said), "some/model").message


@given(
    secret=st.text(
        st.sampled_from(string.ascii_letters + string.digits + "+/=-_.~&?"), min_size=8, max_size=80
    ).filter(lambda text: not os.path.exists(text)),
    is_quoted=st.booleans(),
    before=st.text(max_size=5),
    place=st.integers(0, 500),
)
def test_no_message_contains_a_secret_of_the_environment(
    secret: str, is_quoted: bool, before: str, place: int
) -> None:
    written = quote(secret, safe="") if is_quoted else secret
    shown = message_of(f"{before}{'x ' * (place // 2)}<{written}> and so on", secret)
    assert secret not in shown
    assert written not in shown
    assert len(shown) <= MAX_MESSAGE + len("some/model: ")
    assert len(shown.splitlines()) == 1


def test_a_secret_that_begins_like_another_is_hidden_whole() -> None:
    assert redact("it is abcdefgh-0123.", ["abcdefgh", "abcdefgh-0123"]) == f"it is {MARK}."


def test_what_is_not_a_secret_stays_in_the_message(tmp_path: Path) -> None:
    said = f"no model file in {tmp_path} for the user's name"
    # A path says where a secret is, and a short value can be a word.
    assert message_of(said, str(tmp_path), "GOOGLE_APPLICATION_CREDENTIALS") == f"some/model: {said}"
    assert message_of(said, "name", "DB_PASS") == f"some/model: {said}"
    assert message_of(said, str(tmp_path), "PWD") == f"some/model: {said}"


def test_the_password_of_an_address_is_a_secret_under_any_name() -> None:
    said = "cannot log in as me with hunter2hunter2"
    assert "hunter2hunter2" not in message_of(said, "postgres://me:hunter2hunter2@host/db", "DATABASE_DSN")
    shown = message_of("no way to http://me:pw@proxy:80", "", "X")
    assert shown == "some/model: no way to http://proxy:80"
