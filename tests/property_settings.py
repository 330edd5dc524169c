"""How many examples property tests take: few, or many with `HYPOTHESIS_PROFILE=thorough`."""

import os

import hypothesis

# No deadlines: how long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=25)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=500)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
