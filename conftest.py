"""For the project's own tests."""

pytest_plugins = ["pytester", "tests.openai_server"]
