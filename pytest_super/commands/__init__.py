"""The subcommands of `pytest-super`, one module each.

To add one, write a module with these members and add its name to COMMANDS in `cli`:

HELP                   one line for `pytest-super --help`; "" for what other programs call
add_arguments(parser)  declares its options
run(arguments)         carries it out; returns the exit status; raises SuperError for a mistake of the user
"""
