"""What is taken for the name of a secret: in the environment, in parameters, in headers."""

from __future__ import annotations

import pytest

from pytest_super.model.failure import SECRET_NAME, may_hold_secret

SECRETS = """
    OPENAI_API_KEY ANTHROPIC_AUTH_TOKEN AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID GITHUB_TOKENS api_key apikey
    MYSQL_PASSWORD PGPASSWD GOOGLE_APPLICATION_CREDENTIALS vertex_credentials key KEYS SSH_KEY_PATH token
    x-api-key Authorization extra_headers OTEL_EXPORTER_OTLP_HEADERS client_secret aws_session_token
"""
OTHERS = """
    max_tokens max_completion_tokens max_output_tokens input_cost_per_token output_cost_per_token
    budget_tokens MAX_NEW_TOKENS TOKENIZERS_PARALLELISM KEYBOARD MONKEY prompt_cache_key temperature HOME PATH
    top_k
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_names_of_secrets_are_known(name: str) -> None:
    assert SECRET_NAME.search(name)


@pytest.mark.parametrize("name", OTHERS.split())
def test_other_names_are_not_taken_for_secrets(name: str) -> None:
    assert not SECRET_NAME.search(name)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("api_base=http://me:hidden@host/v1", True),
        ("api_base=http://host:8000/v1", False),
        ('extra_body={"auth": {"token": "k"}}', True),
        ('thinking={"type": "enabled", "budget_tokens": 1024}', False),
    ],
)
def test_a_parameter_may_hold_a_secret_in_its_value(text: str, is_one: bool) -> None:
    assert may_hold_secret(text) is is_one
