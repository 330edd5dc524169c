"""The work behind the authors' subcommands: generate, import, mask, verify, stats, rescore."""
