"""For any pytest that starts in the project, the shipped tasks too: nothing here that only tests need."""

pytest_plugins = ["pytester"]
